package io.penstock.faults

/**
 * Something that goes wrong once, in whichever process comes there first.
 *
 * @param moment
 *   an operation of a checkpoint file manager, or a point in the life of a task
 * @param place
 *   the folder of the file; for tasks the number of the action on the batch, "-" for any
 * @param batch
 *   number that the file's name begins with, the task's batch; None for any
 */
final case class Fault(moment: Fault.Moment, place: String, batch: Option[Long], effect: Fault.Effect) {

  /** One line that `Fault.parse` reads. */
  override def toString: String = s"${moment.name} $place/${batch.fold("*")(_.toString)} ${effect.text}"
}

object Fault {

  /** When it strikes. */
  sealed abstract class Moment(val name: String)

  /** Before anything is written. */
  case object Create extends Moment("create")

  /** All is written, and is not under its name yet. */
  case object Publish extends Moment("publish")

  /** The file is under its name, and nobody has been told. */
  case object Published extends Moment("published")
  case object Open extends Moment("open")
  case object List extends Moment("list")
  case object Delete extends Moment("delete")

  /** A task of the last stage hands over its first row: its state is written and not committed. */
  case object FirstRow extends Moment("first-row")

  /** A task of the last stage has committed its state and is not reported as successful yet. */
  case object TaskEnd extends Moment("task-end")

  /** In place of an action's number. */
  val AnyAction = "-"
  val OfFiles: Seq[Moment] = Seq(Create, Publish, Published, Open, List, Delete)
  val OfTasks: Seq[Moment] = Seq(FirstRow, TaskEnd)

  /** What happens then. */
  sealed abstract class Effect(val text: String)

  /** The operation reports an error. At `Published` it has been done all the same. */
  case object Fail extends Effect("fail")

  /** The operation reports that the file is there already, as a client does that repeats a request whose answer was lost. */
  case object Exists extends Effect("exists")

  /** The process ends at once, as by `kill -9`. */
  case object Die extends Effect("die")

  /** The Python processes beside this one end, as by `kill -9`. */
  case object EndSidecars extends Effect("end-sidecars")

  /** A map output that the task has read is reported as lost. */
  case object LoseMapOutput extends Effect("lose-map-output")
  final case class Delay(ms: Long) extends Effect(s"delay:$ms")

  /**
   * The process ends in an orderly way, as by `kill -TERM`: it goes on while its shutdown hooks run.
   *
   * @param afterMs
   *   how long it goes on before that
   */
  final case class EndOrderly(afterMs: Long) extends Effect(s"end-orderly:$afterMs")

  def parse(text: String): Fault = text.split("[ /]") match {
    case Array(moment, place, batch, effect) =>
      Fault(
        (OfFiles ++ OfTasks).find(_.name == moment).getOrElse(throw unreadable(text)),
        place,
        Option.when(batch != "*")(batch.toLong),
        Seq(Fail, Exists, Die, EndSidecars, LoseMapOutput).find(_.text == effect).getOrElse(effect.split(':') match {
          case Array("delay", ms) => Delay(ms.toLong)
          case Array("end-orderly", afterMs) => EndOrderly(afterMs.toLong)
          case _ => throw unreadable(text)
        })
      )
    case _ => throw unreadable(text)
  }

  private def unreadable(text: String) = new IllegalArgumentException(s"'$text' is no fault")
}
