package org.apache.spark.sql.penstock.integration.harness

import org.apache.logging.log4j.core.appender.AbstractAppender
import org.apache.logging.log4j.core.config.Property
import org.apache.logging.log4j.core.{LogEvent, Logger}
import org.apache.logging.log4j.{Level, LogManager}

/** Captures log messages. */
object Logged {

  /** Runs `body` with a function that returns the warnings that a class has logged so far. */
  def warningsOf(logging: Class[_])(body: (() => Seq[String]) => Unit): Unit = {
    val logger = LogManager.getLogger(logging.getName).asInstanceOf[Logger]
    val lines = new java.util.concurrent.ConcurrentLinkedQueue[String]()
    val appender = new AbstractAppender("kept for a test", null, null, true, Property.EMPTY_ARRAY) {
      override def append(event: LogEvent): Unit = lines.add(event.getMessage.getFormattedMessage): Unit
    }
    val before = logger.getLevel
    appender.start()
    logger.addAppender(appender)
    logger.setLevel(Level.WARN)
    try body(() => lines.toArray(Array.empty[String]).toSeq)
    finally {
      logger.setLevel(before)
      logger.removeAppender(appender)
    }
  }
}
