import process from 'node:process';

// Imported before a framework, which reads these when it starts: no tracing, no telemetry, no logs, and no
// address asked but the model's. What a framework offers as an option is turned off in its adapter.
Object.assign(process.env, {
  NODE_ENV: 'production',
  LANGSMITH_TRACING: 'false',
  MASTRA_OFFLINE: 'true',
  MASTRA_TELEMETRY_DISABLED: 'true',
  OPENAI_AGENTS_DISABLE_TRACING: '1',
  OTEL_TRACES_SAMPLER: 'always_off',
  VOLTAGENT_LOG_LEVEL: 'fatal',
});
