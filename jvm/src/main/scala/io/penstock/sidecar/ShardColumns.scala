package io.penstock.sidecar

import java.io.ByteArrayOutputStream
import java.nio.channels.Channels

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.arrow.memory.RootAllocator
import org.apache.arrow.vector.ipc.ArrowStreamWriter
import org.apache.arrow.vector.types.pojo.{ArrowType, Field, FieldType}
import org.apache.arrow.vector.{BigIntVector, FieldVector, VectorSchemaRoot}

/** Columns of one number per shard, as an Arrow IPC stream of one record batch. */
object ShardColumns {
  private val MostBytes = 64L << 20
  private val Number = FieldType.notNullable(new ArrowType.Int(64, true))

  /** @param columns names and numbers, as many in each */
  def encode(columns: (String, Array[Long])*): Array[Byte] = Using.Manager { use =>
    val allocator = use(new RootAllocator(MostBytes))
    val vectors = columns.map { case (name, numbers) =>
      val vector = new BigIntVector(new Field(name, Number, null), allocator)
      vector.allocateNew(numbers.length)
      numbers.indices.foreach(i => vector.set(i, numbers(i)))
      vector.setValueCount(numbers.length)
      vector
    }
    val root = use(new VectorSchemaRoot(vectors.map(_.asInstanceOf[FieldVector]).asJava))
    val out = new ByteArrayOutputStream
    val writer = use(new ArrowStreamWriter(root, null, Channels.newChannel(out)))
    writer.start()
    writer.writeBatch()
    writer.end()
    out.toByteArray
  }.get
}
