"""Judge which protections of `SECURITY.md` are enabled, by settings and installed packages. Pure functions."""

from collections.abc import Iterator

from penstock.api.settings import transports
from penstock.diagnosis.judgement import TRANSPORT_KEY, Judgement, State
from penstock.diagnosis.machine import Machine

AUTHENTICATE = "spark.authenticate"
ENCRYPTING = (
    "spark.network.crypto.enabled",
    "spark.authenticate.enableSaslEncryption",
    "spark.ssl.enabled",
    "spark.ssl.rpc.enabled",
)
"""Settings of which each makes executors and their sidecars encrypt what they send to each other."""
ACLS = ("spark.acls.enable", "spark.ui.acls.enable")
FILTERS = "spark.ui.filters"
REPORT_KEYS = "spark.penstock.report.keys"


def judge_security(machine: Machine) -> list[Judgement]:
    """Judge each protection, with the most important first."""
    return [_authentication(machine), *_encryption(machine), *_strangers(machine), _status(machine), _keys(machine)]


def encryption_lacks(machine: Machine) -> Iterator[Judgement]:
    """Yield a judgement if sidecars must encrypt but cannot."""
    if machine.encryption_error and _is_encrypted(machine):
        remedy = "Install penstock[encryption] for the executors' Python: `pip install 'penstock[encryption]'`."
        costs = "transfer sidecars do not start, so executors read shards that move to them from the checkpoint."
        yield Judgement("encryption", State.WRONG, machine.encryption_error, remedy, costs)


def _is_set(machine: Machine, key: str, default: str = "false") -> bool:
    return machine.defaults.get(key, default).strip().lower() == "true"


def _is_encrypted(machine: Machine) -> bool:
    return any(_is_set(machine, key) for key in ENCRYPTING)


def _authentication(machine: Machine) -> Judgement:
    if _is_set(machine, AUTHENTICATE):
        return Judgement("authentication", State.OK, f"{AUTHENTICATE} is set: sidecars prove that they know its secret")
    remedy = f"Set `{AUTHENTICATE} true`. Add a network policy or firewall if others share the network."
    costs = "anybody who reaches the ports of Spark can run code there; sidecars still reject other applications."
    return Judgement("authentication", State.OFF, f"{AUTHENTICATE} is not set", remedy, costs)


def _encryption(machine: Machine) -> Iterator[Judgement]:
    if _is_encrypted(machine):
        lacks = list(encryption_lacks(machine))
        yield from lacks or [Judgement("encryption", State.OK, "sidecars encrypt what they send (AES-256-GCM)")]
    else:
        remedy = f"Set `{ENCRYPTING[0]} true`, and `pip install 'penstock[encryption]'` for the executors' Python."
        costs = "anybody who can read the network sees keys and values of the state that is sent."
        yield Judgement("encryption", State.OFF, "traffic between executors is not encrypted", remedy, costs)


def _strangers(machine: Machine) -> Iterator[Judgement]:
    """Yield a judgement if the transport that is set accepts data from processes that do not know the secret."""
    name = machine.defaults.get(TRANSPORT_KEY, "")
    if any(transport.name == name and transport.admits_strangers for transport in transports()):
        if _is_set(machine, AUTHENTICATE) or _is_encrypted(machine):
            found, costs = "is refused with authentication and with encryption", "shards are sent by tcp."
        else:
            found = "listens on all addresses of the host, and accepts data from anybody"
            costs = f"anybody who reaches the port can end a sidecar, or worse. Use {name} only in a trusted network."
        yield Judgement(name, State.OFF, found, f"Remove {TRANSPORT_KEY}: `auto` never chooses {name}.", costs)


def _status(machine: Machine) -> Judgement:
    if any(_is_set(machine, key) for key in ACLS) or machine.defaults.get(FILTERS):
        return Judgement("status", State.OK, "Spark's UI protects it with ACLs or filters")
    remedy = f"Set `{ACLS[0]} true` and `spark.ui.view.acls`, and add a filter that authenticates ({FILTERS})."
    costs = "anybody who reaches Spark's UI sees names of queries, sizes of shards and heavy keys, and can end queries."
    return Judgement("status", State.OFF, "Spark's UI is open", remedy, costs)


def _keys(machine: Machine) -> Judgement:
    if not _is_set(machine, REPORT_KEYS, "true"):
        return Judgement("keys in logs", State.OK, "heavy keys are reported by their hash, which can be guessed")
    costs = "values of heavy keys appear in progress, logs, event logs and Spark's UI."
    remedy = f"Set `{REPORT_KEYS} false`."
    return Judgement("keys in logs", State.OFF, "heavy keys are reported by their values", remedy, costs)
