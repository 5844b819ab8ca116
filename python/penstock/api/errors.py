"""The error that Penstock raises on purpose."""


class PenstockError(Exception):
    """An error with a stable name, and with what to do.

    Parameters
    ----------
    error_class
        ``PENSTOCK_...``, for searching and for tests; the JVM side uses the same names.
    detail
        What was found, what was expected, and what to do.
    """

    def __init__(self, error_class: str, detail: str) -> None:
        super().__init__(f"[{error_class}] {detail}")
        self.error_class = error_class
        self.detail = detail
