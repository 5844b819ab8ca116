package io.penstock.sidecars.planner

import java.io.{ByteArrayInputStream, ByteArrayOutputStream}
import java.nio.channels.Channels

import scala.jdk.CollectionConverters._
import scala.util.{Try, Using}

import org.apache.arrow.memory.RootAllocator
import org.apache.arrow.vector.ipc.{ArrowStreamReader, ArrowStreamWriter}
import org.apache.arrow.vector.types.pojo.{ArrowType, Field, FieldType}
import org.apache.arrow.vector.{BigIntVector, FieldVector, VectorSchemaRoot}

/** Encodes columns with one number per shard as an Arrow IPC stream with one record batch. */
object ShardColumns {
  private val MaxBytes = 64L << 20
  private val Number = FieldType.notNullable(new ArrowType.Int(64, true))

  /** @param columns name and numbers of each column; all columns have the same length */
  def encode(columns: (String, Array[Long])*): Array[Byte] = Using.Manager { use =>
    val allocator = use(new RootAllocator(MaxBytes))
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

  /**
   * The numbers of one column.
   *
   * @param length
   *   expected length of the column
   * @return
   *   the numbers, or the reason why the bytes do not contain them
   */
  def decode(bytes: Array[Byte], name: String, length: Int): Either[String, Array[Long]] =
    Try(Using.Manager { use =>
      val allocator = use(new RootAllocator(MaxBytes))
      val reader = use(new ArrowStreamReader(new ByteArrayInputStream(bytes), allocator))
      if (!reader.loadNextBatch()) Left(s"column $name is missing: the stream has no record batch")
      else reader.getVectorSchemaRoot.getVector(name) match {
        case v: BigIntVector if v.getValueCount == length && v.getNullCount == 0 =>
          Right(Array.tabulate(length)(v.get))
        case null => Left(s"column $name is missing")
        case other => Left(s"column $name must have $length numbers (int64), found ${other.getField}")
      }
    }.get).fold(e => Left(s"column $name cannot be read: ${e.getMessage}"), identity)
}
