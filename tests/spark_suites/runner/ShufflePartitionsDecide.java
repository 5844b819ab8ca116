import java.util.Collections;
import java.util.Map;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;

/**
 * Named after Penstock's plugin in {@code spark.plugins}, it takes back the number of state partitions, so that
 * {@code spark.sql.shuffle.partitions} decides it again: Spark's tests choose it so (1, 2, 3, 5, 10, 100), and count
 * on it.
 */
public final class ShufflePartitionsDecide implements SparkPlugin {
  private static final String STATE_PARTITIONS = "spark.sql.streaming.internal.stateStore.partitions";

  @Override
  public DriverPlugin driverPlugin() {
    return new DriverPlugin() {
      @Override
      public Map<String, String> init(SparkContext sc, PluginContext context) {
        context.conf().remove(STATE_PARTITIONS);
        return Collections.emptyMap();
      }
    };
  }

  @Override
  public ExecutorPlugin executorPlugin() {
    return null;
  }
}
