package io.penstock.conf

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, DataInputStream, DataOutputStream}

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration

import org.scalatest.funsuite.AnyFunSuite

class HadoopSourcesSuite extends AnyFunSuite {
  private def settings(conf: Configuration) = conf.iterator.asScala.map(s => s.getKey -> s.getValue).toMap

  private def written(conf: Configuration) = {
    val bytes = new ByteArrayOutputStream()
    conf.write(new DataOutputStream(bytes))
    bytes.toByteArray
  }

  private def read(bytes: Array[Byte]) = {
    val conf = new Configuration(false)
    conf.readFields(new DataInputStream(new ByteArrayInputStream(bytes)))
    conf
  }

  test("without sources, the settings and their copies are the same") {
    val conf = new Configuration()
    conf.set("fs.some.setting", "set by the application")
    val before = settings(conf)
    val bytes = written(new Configuration(conf)).length
    assert(before.size > 100 && before.keys.forall(conf.getPropertySources(_) != null))
    HadoopSources.drop(conf)
    assert(before.keys.forall(conf.getPropertySources(_) == null))
    val copy = new Configuration(conf)
    assert(settings(conf) == before && settings(copy) == before)
    assert(settings(read(written(copy))) == before)
    assert(written(copy).length < bytes * 0.75)
  }

  test("settings can be set, removed and loaded again after their sources were removed") {
    val conf = new Configuration()
    HadoopSources.drop(conf)
    conf.set("fs.some.setting", "1")
    conf.unset("io.file.buffer.size")
    assert(conf.get("fs.some.setting") == "1" && conf.get("io.file.buffer.size") == null)
    assert(conf.getPropertySources("fs.some.setting").nonEmpty)
    conf.reloadConfiguration()
    assert(conf.get("fs.some.setting") == "1" && settings(conf).size > 100)
  }
}
