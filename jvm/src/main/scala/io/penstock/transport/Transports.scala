package io.penstock.transport

/**
 * What the JVM knows of a transport that carries messages between transfer sidecars, which implement it. The sidecars'
 * own list is `penstock.transport.registry`; a test compares the two.
 *
 * @param name
 *   value of the setting `spark.penstock.transport`
 * @param number
 *   number in the first byte of an answer, from 1 to 15 (docs/PROTOCOL.md, section 12)
 * @param means
 *   what carries the messages, for documentation
 * @param encrypts
 *   whether it can encrypt
 * @param admitsStrangers
 *   whether processes that do not know the application's secret can send to a sidecar
 * @param onlyByName
 *   whether it is not used unless the setting names it
 */
final case class Transport(
    name: String,
    number: Int,
    means: String,
    encrypts: Boolean = false,
    admitsStrangers: Boolean = false,
    onlyByName: Boolean = false
)

/** Transports between sidecars, and the values of the setting `spark.penstock.transport`. */
object Transports {

  /** Value of the setting with which no shard is transferred. */
  val Off = "off"

  /** Value of the setting with which sidecars choose the best transport that both offer. */
  val Auto = "auto"

  /** All transports, the best first. */
  val All: Seq[Transport] = Seq(
    Transport("local", 1, "shared memory on one host"),
    Transport("verbs", 2, "RDMA"),
    Transport("mpi", 3, "MPI", admitsStrangers = true, onlyByName = true),
    Transport("tcp", 4, "any network", encrypts = true)
  )

  /** Name of the transport with this number; empty if there is none. */
  def name(number: Int): String = All.find(_.number == number).fold("")(_.name)
}
