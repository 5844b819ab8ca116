package io.penstock.errors

/**
 * An error that Penstock raises on purpose.
 *
 * @param errorClass
 *   stable name, `PENSTOCK_...`, for searching and for tests
 * @param detail
 *   what was found, what was expected, and what to do
 */
class PenstockException(val errorClass: String, val detail: String, cause: Throwable = null)
    extends RuntimeException(s"[$errorClass] $detail", cause)
