package io.penstock.process

/** A sidecar failed and cannot be used any more. */
final class SidecarFailure(message: String, cause: Throwable = null) extends Exception(message, cause)
