"""Judges what of `SECURITY.md` holds here: the settings that protection needs, and what it needs besides. Pure."""

from collections.abc import Iterator

from penstock.diagnosis.judgement import TRANSPORT_KEY, Judgement, State
from penstock.diagnosis.machine import Machine

AUTHENTICATE = "spark.authenticate"
ENCRYPTING = (
    "spark.network.crypto.enabled",
    "spark.authenticate.enableSaslEncryption",
    "spark.ssl.enabled",
    "spark.ssl.rpc.enabled",
)
"""One of these makes the executors encrypt what they tell each other, their sidecars included."""
ACLS = ("spark.acls.enable", "spark.ui.acls.enable")
FILTERS = "spark.ui.filters"
REPORT_KEYS = "spark.penstock.report.keys"


def judge_security(machine: Machine) -> list[Judgement]:
    """Judge each protection in the order of what it is worth."""
    return [_authentication(machine), *_encryption(machine), *_mpi(machine), _status(machine), _keys(machine)]


def encryption_lacks(machine: Machine) -> Iterator[Judgement]:
    """Find out whether sidecars have to encrypt, and cannot."""
    if machine.encryption_error and _is_encrypted(machine):
        remedy = "Install penstock[encryption] for the executors' Python: `pip install 'penstock[encryption]'`."
        costs = "there are no sidecars beside executors: shards that change executor are read from the checkpoint."
        yield Judgement("encryption", State.WRONG, machine.encryption_error, remedy, costs)


def _is_set(machine: Machine, key: str, default: str = "false") -> bool:
    return machine.defaults.get(key, default).strip().lower() == "true"


def _is_encrypted(machine: Machine) -> bool:
    return any(_is_set(machine, key) for key in ENCRYPTING)


def _authentication(machine: Machine) -> Judgement:
    if _is_set(machine, AUTHENTICATE):
        return Judgement("authentication", State.OK, f"{AUTHENTICATE} is set: sidecars prove that they know its secret")
    remedy = f"`{AUTHENTICATE} true`, and a network policy or firewall where several share the network."
    costs = "anybody who reaches the ports of Spark runs code there; sidecars take nobody of another application."
    return Judgement("authentication", State.OFF, f"{AUTHENTICATE} is not set", remedy, costs)


def _encryption(machine: Machine) -> Iterator[Judgement]:
    if _is_encrypted(machine):
        lacks = list(encryption_lacks(machine))
        yield from lacks or [Judgement("encryption", State.OK, "what sidecars send is encrypted (AES-256-GCM)")]
    else:
        remedy = f"`{ENCRYPTING[0]} true`, and `pip install 'penstock[encryption]'` for the executors' Python."
        costs = "who sees the network sees keys and values of the state that travels."
        yield Judgement("encryption", State.OFF, "what executors send is not encrypted", remedy, costs)


def _mpi(machine: Machine) -> Iterator[Judgement]:
    if machine.defaults.get(TRANSPORT_KEY) == "mpi":
        if _is_set(machine, AUTHENTICATE) or _is_encrypted(machine):
            found, costs = "is refused with authentication and with encryption", "shards travel by tcp."
        else:
            found = "listens at all addresses of the host, and takes what anybody sends"
            costs = "who reaches the port can end a sidecar, or worse: it is for networks without strangers."
        yield Judgement("mpi", State.OFF, found, f"Leave {TRANSPORT_KEY} out: `auto` never takes mpi.", costs)


def _status(machine: Machine) -> Judgement:
    if any(_is_set(machine, key) for key in ACLS) or machine.defaults.get(FILTERS):
        return Judgement("status", State.OK, "Spark's UI serves it by its ACLs and filters")
    remedy = f"`{ACLS[0]} true` with `spark.ui.view.acls`, and a filter that authenticates ({FILTERS})."
    costs = "who reaches Spark's UI sees names of queries, sizes of shards and heavy keys, and may end queries."
    return Judgement("status", State.OFF, "Spark's UI is open", remedy, costs)


def _keys(machine: Machine) -> Judgement:
    if not _is_set(machine, REPORT_KEYS, "true"):
        return Judgement("keys in logs", State.OK, "heavy keys are told by their hash, which can be guessed")
    costs = "values of heavy keys are in progress, logs, event logs and Spark's UI."
    return Judgement("keys in logs", State.OFF, "heavy keys are told by their values", f"`{REPORT_KEYS} false`.", costs)
