// The trace of a call: a request that is retried, and a tool of a sub-agent that fails. A program exports it by OTLP: see packages/otel.
import { createAgent, MillraceError, retry, tool } from 'millrace';
import { agentTool } from 'millrace/teams';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { otel } from '@millrace/otel';
import * as sdk from '@opentelemetry/sdk-trace-base';
import { throwError } from 'rxjs';

const down = () => throwError(() => new MillraceError('server', 'The provider is down.'));
const gauge = tool({
  name: 'gauge',
  description: 'Measures the water.',
  run: () => Promise.reject(new Error('The gauge is frozen.')),
});
const miller = createAgent({
  name: 'miller',
  model: scriptedModel([toolCall('gauge')], [text('I cannot say.')]),
  tools: [gauge],
});
const exporter = new sdk.InMemorySpanExporter();
const spanProcessors = [new sdk.SimpleSpanProcessor(exporter)];
const tracerProvider = new sdk.BasicTracerProvider({ spanProcessors });
const asks = toolCall('miller', { user_prompt: 'Is there enough water?' });
const agent = createAgent({
  name: 'clerk',
  model: retry(scriptedModel(down, [asks], [text('Ask again in spring.')]), { minMs: 1 }),
  tools: [agentTool(miller, { description: 'Knows the mill.' })],
  use: [otel({ tracerProvider })],
});
await agent.call('Can we grind today?');

const printBelow = (parent?: string, indent = ''): void => {
  for (const span of exporter.getFinishedSpans()) {
    if (span.parentSpanContext?.spanId !== parent) continue;
    console.log(indent + span.name, ...('error.type' in span.attributes ? ['✗'] : []));
    printBelow(span.spanContext().spanId, `${indent}  `);
  }
};
printBelow();
