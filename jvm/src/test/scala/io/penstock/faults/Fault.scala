package io.penstock.faults

/**
 * A fault that strikes once, in the first process that reaches its moment.
 *
 * @param moment
 *   Operation of a checkpoint file manager, or point in the life of a task
 * @param place
 *   Folder of the file. For tasks, the number of the action on the batch, or "-" for any action
 * @param batch
 *   Number at the start of the file name, or the task's batch. None matches any
 */
final case class Fault(moment: Fault.Moment, place: String, batch: Option[Long], effect: Fault.Effect) {

  /** One line of text that `Fault.parse` reads. */
  override def toString: String = s"${moment.name} $place/${batch.fold("*")(_.toString)} ${effect.text}"
}

object Fault {

  /** The moment at which a fault strikes. */
  sealed abstract class Moment(val name: String)

  /** Before anything is written. */
  case object Create extends Moment("create")

  /** All bytes are written, but the file does not have its name yet. */
  case object Publish extends Moment("publish")

  /** The file has its name, but the caller does not know it yet. */
  case object Published extends Moment("published")
  case object Open extends Moment("open")
  case object List extends Moment("list")
  case object Delete extends Moment("delete")

  /** A task of the last stage emits its first row. Its state is written but not committed. */
  case object FirstRow extends Moment("first-row")

  /** A task of the last stage has committed its state but is not reported as successful yet. */
  case object TaskEnd extends Moment("task-end")

  /** Stands for any action in place of an action's number. */
  val AnyAction = "-"
  val OfFiles: Seq[Moment] = Seq(Create, Publish, Published, Open, List, Delete)
  val OfTasks: Seq[Moment] = Seq(FirstRow, TaskEnd)

  /** The effect of a fault. */
  sealed abstract class Effect(val text: String)

  /** The operation reports an error. At `Published` it has taken effect nevertheless. */
  case object Fail extends Effect("fail")

  /** The operation reports that the file exists, as when a client repeats a request whose response was lost. */
  case object Exists extends Effect("exists")

  /** The process ends immediately, as with `kill -9`. */
  case object Die extends Effect("die")

  /** The sidecars of this process end immediately, as with `kill -9`. */
  case object EndSidecars extends Effect("end-sidecars")

  /** A map output that the task has read is reported as lost. */
  case object LoseMapOutput extends Effect("lose-map-output")
  final case class Delay(ms: Long) extends Effect(s"delay:$ms")

  /**
   * The process ends in an orderly way, as with `kill -TERM`. Tasks continue while its shutdown hooks run.
   *
   * @param afterMs
   *   Delay before the end begins, in milliseconds
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

  private def unreadable(text: String) = new IllegalArgumentException(s"'$text' is not a fault")
}
