"""The exception that Penstock's Python code raises."""


class PenstockError(Exception):
    """An error with a stable error class and a message that says what to do.

    Parameters
    ----------
    error_class
        Error class, ``PENSTOCK_...``. The JVM uses the same names.
    detail
        Message that says what is wrong, what is allowed, and what to do.
    """

    def __init__(self, error_class: str, detail: str) -> None:
        super().__init__(f"[{error_class}] {detail}")
        self.error_class = error_class
        self.detail = detail
