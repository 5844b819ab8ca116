package org.apache.spark.sql.penstock.integration

import java.util.concurrent.ConcurrentLinkedQueue

import scala.jdk.CollectionConverters._

import org.apache.logging.log4j.core.appender.AbstractAppender
import org.apache.logging.log4j.core.config.{LoggerConfig, Property}
import org.apache.logging.log4j.core.{LogEvent, LoggerContext}
import org.apache.logging.log4j.{Level, LogManager}
import org.apache.spark.sql.penstock.integration.harness._
import org.apache.spark.sql.streaming.Trigger

import io.penstock.Patience
import org.scalatest.funsuite.AnyFunSuite

/** The lines that Penstock logs for a query without incidents. */
class LogLinesSuite extends AnyFunSuite with PenstockApplication with Patience {
  import LogLinesSuite._

  test("a query without incidents logs at most one line per batch and no warning") {
    val batches = 12
    application.conf.set("spark.sql.shuffle.partitions", "4")
    val lines = new Lines
    val ran = lines.during {
      val query = application.readStream
        .format("rate-micro-batch")
        .option("rowsPerBatch", "200")
        .load()
        .selectExpr("value % 20 AS key")
        .groupBy("key")
        .count()
        .writeStream
        .outputMode("update")
        .format("noop")
        .option("checkpointLocation", newDirectory("checkpoint").toString)
        .trigger(Trigger.ProcessingTime(0))
        .start()
      try {
        eventually(assert(query.recentProgress.count(_.numInputRows > 0) >= batches))
        query.recentProgress.length
      } finally query.stop()
    }
    assert(lines.at(Level.WARN).isEmpty)
    val logged = lines.at(Level.INFO)
    assert(logged.exists(_.contains("routed")), "no line of Penstock was captured")
    assert(logged.size <= ran, logged.mkString("\n"))
  }
}

object LogLinesSuite {
  private val OurLoggers = Seq("io.penstock", "org.apache.spark.sql.penstock")

  /** Captures the lines of Penstock's loggers from level INFO on. */
  final private class Lines {
    private val events = new ConcurrentLinkedQueue[LogEvent]()

    private val appender = new AbstractAppender("lines", null, null, true, Property.EMPTY_ARRAY) {
      override def append(event: LogEvent): Unit = events.add(event.toImmutable): Unit
    }

    def during[T](body: => T): T = {
      val context = LogManager.getContext(false).asInstanceOf[LoggerContext]
      val configuration = context.getConfiguration
      appender.start()
      OurLoggers.foreach { name =>
        val logger = new LoggerConfig(name, Level.INFO, false)
        logger.addAppender(appender, Level.INFO, null)
        configuration.addLogger(name, logger)
      }
      context.updateLoggers()
      try body
      finally {
        OurLoggers.foreach(configuration.removeLogger)
        context.updateLoggers()
      }
    }

    /** Lines of the given level and of more severe ones. */
    def at(level: Level): Seq[String] =
      events.asScala.filter(_.getLevel.isMoreSpecificThan(level)).map(_.getMessage.getFormattedMessage).toSeq
  }
}
