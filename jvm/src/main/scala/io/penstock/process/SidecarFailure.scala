package io.penstock.process

/** A sidecar that cannot be used any more, with what to do. */
final class SidecarFailure(what: String, cause: Throwable = null) extends Exception(what, cause)
