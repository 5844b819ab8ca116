import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.security.CodeSource;
import java.security.ProtectionDomain;
import java.util.Map;
import org.apache.xbean.asm9.ClassReader;
import org.apache.xbean.asm9.ClassVisitor;
import org.apache.xbean.asm9.ClassWriter;
import org.apache.xbean.asm9.MethodVisitor;
import org.apache.xbean.asm9.Opcodes;
import org.apache.xbean.asm9.Type;
import org.apache.xbean.asm9.commons.ClassRemapper;
import org.apache.xbean.asm9.commons.SimpleRemapper;

/**
 * Java agent that replaces RocksDB's state store provider in Spark's test classes, while they are loaded. Only classes
 * of Spark's test jars are rewritten, never Spark itself.
 *
 * <p>The argument is empty, {@code literals=CLASS} or {@code types=CLASS,STORE}. With {@code literals}, class literals
 * and equal strings, which suites use in the provider setting, are replaced by CLASS. With {@code types}, every use of
 * the type is replaced as well, including constructors, for suites that create providers themselves; the string by
 * which they recognize stores with RocksDB's iterators is replaced by STORE. In any case a LinkageError fails only the
 * test in which it occurs. Without the agent, ScalaTest would end the whole run.
 */
public final class SuiteAgent {
  private static final String ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider";
  private static final String ROCKSDB_PATH = ROCKSDB.replace('.', '/');
  private static final String ROCKSDB_STORE = "RocksDBStateStore";

  private SuiteAgent() {}

  /** Creates a class visitor over {@code out} for each class. */
  private interface Rewrite {
    ClassVisitor over(ClassVisitor out);
  }

  public static void premain(String argument, Instrumentation instrumentation) {
    instrumentation.addTransformer(new LinkageErrorsFailOneTest());
    if (argument == null || argument.isEmpty()) {
      return;
    }
    String[] parts = argument.split("[=,]");
    String provider = parts[1];
    if (parts[0].equals("literals") && parts.length == 2) {
      Map<String, String> strings = Map.of(ROCKSDB, provider);
      instrumentation.addTransformer(new TestClasses(out -> new Literals(out, strings)));
    } else if (parts[0].equals("types") && parts.length == 3) {
      Map<String, String> strings = Map.of(ROCKSDB, provider, ROCKSDB_STORE, parts[2]);
      SimpleRemapper types = new SimpleRemapper(ROCKSDB_PATH, provider.replace('.', '/'));
      instrumentation.addTransformer(new TestClasses(out -> new ClassRemapper(new Literals(out, strings), types)));
    } else {
      throw new IllegalArgumentException("expected literals=CLASS or types=CLASS,STORE, found " + argument);
    }
  }

  /** Rewrites the classes of Spark SQL's test jars that mention the RocksDB provider. */
  private static final class TestClasses implements ClassFileTransformer {
    private final Rewrite rewrite;

    TestClasses(Rewrite rewrite) {
      this.rewrite = rewrite;
    }

    @Override
    public byte[] transform(ClassLoader loader, String name, Class<?> old, ProtectionDomain domain, byte[] bytes) {
      if (name == null || !name.startsWith("org/apache/spark/sql/") || !fromTestJar(domain)) {
        return null;
      }
      String text = new String(bytes, java.nio.charset.StandardCharsets.ISO_8859_1);
      if (!text.contains(ROCKSDB_PATH) && !text.contains(ROCKSDB) && !text.contains(ROCKSDB_STORE)) {
        return null;
      }
      ClassWriter writer = new ClassWriter(0);
      new ClassReader(bytes).accept(rewrite.over(writer), 0);
      return writer.toByteArray();
    }

    private static boolean fromTestJar(ProtectionDomain domain) {
      CodeSource source = domain == null ? null : domain.getCodeSource();
      return source != null && source.getLocation() != null && source.getLocation().getPath().endsWith("-tests.jar");
    }
  }

  /** Replaces strings, and class literals by class name. Casts, type tests and constructors are not changed. */
  private static final class Literals extends ClassVisitor {
    private final Map<String, String> strings;

    Literals(ClassVisitor out, Map<String, String> strings) {
      super(Opcodes.ASM9, out);
      this.strings = strings;
    }

    @Override
    public MethodVisitor visitMethod(int access, String name, String descriptor, String signature, String[] thrown) {
      return new MethodVisitor(Opcodes.ASM9, super.visitMethod(access, name, descriptor, signature, thrown)) {
        @Override
        public void visitLdcInsn(Object value) {
          if (value instanceof Type && strings.containsKey(((Type) value).getClassName())) {
            String type = strings.get(((Type) value).getClassName());
            super.visitLdcInsn(Type.getObjectType(type.replace('.', '/')));
          } else {
            super.visitLdcInsn(value instanceof String ? strings.getOrDefault(value, (String) value) : value);
          }
        }
      };
    }
  }

  /** Makes VirtualMachineError the only throwable that ends a run of ScalaTest. */
  private static final class LinkageErrorsFailOneTest implements ClassFileTransformer {
    @Override
    public byte[] transform(ClassLoader loader, String name, Class<?> old, ProtectionDomain domain, byte[] bytes) {
      if (!"org/scalatest/Suite$".equals(name)) {
        return null;
      }
      ClassWriter writer = new ClassWriter(0);
      new ClassReader(bytes).accept(new ClassVisitor(Opcodes.ASM9, writer) {
        @Override
        public MethodVisitor visitMethod(int access, String method, String descriptor, String signature, String[] e) {
          MethodVisitor out = super.visitMethod(access, method, descriptor, signature, e);
          if (!method.equals("anExceptionThatShouldCauseAnAbort")) {
            return out;
          }
          out.visitCode();
          out.visitVarInsn(Opcodes.ALOAD, 1);
          out.visitTypeInsn(Opcodes.INSTANCEOF, "java/lang/VirtualMachineError");
          out.visitInsn(Opcodes.IRETURN);
          out.visitMaxs(1, 2);
          out.visitEnd();
          return null;
        }
      }, 0);
      return writer.toByteArray();
    }
  }
}
