import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type CallStoreDriver, createCallStore, inProcessCalls } from '@millrace/core/journal';
import { concatMap, lastValueFrom, type ObservedValueOf, take } from 'rxjs';

/** A process that ends in the middle of a tool of a sub-agent. It prints what its journal records, and its spans. */
const script = `
  import { writeSync } from 'node:fs';
  import { createAgent, tool } from '@millrace/core';
  import { createCallStore, inProcessCalls, journal } from '@millrace/core/journal';
  import { agentTool } from '@millrace/core/teams';
  import { scriptedModel, text, toolCall } from '@millrace/core/testing';
  import { otel } from '@millrace/otel';
  import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
  import { concatMap, map } from 'rxjs';

  const print = (value) => writeSync(1, JSON.stringify(value) + '\\n');
  const driver = inProcessCalls();
  const printing = {
    ...driver,
    claim$: (callId) =>
      driver.claim$(callId).pipe(
        map((claim) => ({ append$: (records) => (print({ records }), claim.append$(records)) })),
      ),
  };
  const tracerProvider = new BasicTracerProvider({
    spanProcessors: [{
      onStart: () => {},
      onEnd: ({ name, parentSpanContext, ...span }) =>
        print({ span: { name, parent: parentSpanContext?.spanId, ...span._spanContext } }),
      forceFlush: async () => {},
      shutdown: async () => {},
    }],
  });
  const inner = createAgent({
    name: 'inner',
    model: scriptedModel([toolCall('look', {}, 'a')], [toolCall('slow', {}, 'b')]),
    tools: [
      tool({ name: 'look', description: 'Looks.', run: () => 'A mill.' }),
      tool({ name: 'slow', description: 'Takes long.', run: () => process.exit(9) }),
    ],
  });
  const outer = createAgent({
    name: 'outer',
    model: scriptedModel([toolCall('inner', { user_prompt: 'Look.' }, 'i')]),
    tools: [agentTool(inner, { description: 'Looks.' })],
    use: [otel({ tracerProvider }), journal(createCallStore(printing))],
  });
  await outer.call('What is there?', { callId: 'c' });
`;

export interface FirstSpan {
  readonly name: string;
  readonly parent: string | undefined;
  readonly traceId: string;
  readonly spanId: string;
}

/** Runs the process, and returns its spans and a store with what its journal recorded. */
export const firstProcess = async () => {
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    cwd: join(import.meta.dirname, '..'),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines: string[] = [];
  const reader = createInterface(child.stdout).on('line', (line) => lines.push(line));
  const [[exitCode]] = await Promise.all([once(child, 'exit'), once(reader, 'close')]);
  const printed = lines.map(
    (line) => JSON.parse(line) as { readonly span?: FirstSpan; readonly records?: Records },
  );
  const driver = inProcessCalls();
  await append(
    driver,
    printed.flatMap(({ records = [] }) => records),
  );
  const spans = printed.flatMap(({ span }) => (span === undefined ? [] : [span]));
  return { exitCode: exitCode as number, spans, store: createCallStore(driver) };
};

type Claim = ObservedValueOf<ReturnType<CallStoreDriver['claim$']>>;
type Records = Parameters<Claim['append$']>[0];

const append = (driver: CallStoreDriver, records: Records): Promise<unknown> =>
  lastValueFrom(
    driver.claim$('c').pipe(
      take(1),
      concatMap((claim) => claim.append$(records)),
    ),
    { defaultValue: undefined },
  );
