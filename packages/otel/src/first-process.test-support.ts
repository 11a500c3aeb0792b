import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type CallStoreDriver, createCallStore, inProcessCalls } from 'millrace/journal';
import { concatMap, lastValueFrom, type ObservedValueOf, take } from 'rxjs';

const head = `
  import { writeSync } from 'node:fs';
  import { createAgent, suspend, tool } from 'millrace';
  import { createCallStore, inProcessCalls, journal } from 'millrace/journal';
  import { sessions } from 'millrace/sessions';
  import { agentTool } from 'millrace/teams';
  import { scriptedModel, text, toolCall } from 'millrace/testing';
  import { otel } from '@millrace/otel';
  import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
  import { map } from 'rxjs';

  const print = (value) => writeSync(1, JSON.stringify(value) + '\\n');
  const tracerProvider = new BasicTracerProvider({
    spanProcessors: [{
      onStart: () => {},
      onEnd: (span) => {
        const { traceId, spanId } = span.spanContext();
        const { name, attributes, parentSpanContext } = span;
        print({ span: { name, attributes, parent: parentSpanContext?.spanId, traceId, spanId } });
      },
      forceFlush: async () => {},
      shutdown: async () => {},
    }],
  });
`;

/** Ends in the middle of a tool of a sub-agent. Prints what its journal records, and its spans. */
const ending = `
  const driver = inProcessCalls();
  const printing = {
    ...driver,
    claim$: (callId) =>
      driver.claim$(callId).pipe(
        map((claim) => ({ append$: (records) => (print({ records }), claim.append$(records)) })),
      ),
  };
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

/** Suspends a call of a session. Prints the state of the session, and its spans. */
const suspending = `
  const agent = createAgent({
    model: scriptedModel([toolCall('ask', {}, 'a')]),
    tools: [tool({ name: 'ask', description: 'Asks.', run: () => suspend({}) })],
    use: [otel({ tracerProvider })],
  });
  const session = sessions(agent).open('s');
  await session.call('Who is there?');
  print({ state: await session.saveState() });
`;

export interface FirstSpan {
  readonly name: string;
  readonly parent: string | undefined;
  readonly traceId: string;
  readonly spanId: string;
  readonly attributes: Readonly<Record<string, unknown>>;
}

interface PrintedLine {
  readonly span?: FirstSpan;
  readonly records?: Records;
  readonly state?: unknown;
}

const run = async (script: string) => {
  const child = spawn(process.execPath, ['--input-type=module', '-e', head + script], {
    cwd: join(import.meta.dirname, '..'),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines: string[] = [];
  const reader = createInterface(child.stdout).on('line', (line) => lines.push(line));
  const [[exitCode]] = await Promise.all([once(child, 'exit'), once(reader, 'close')]);
  const printed = lines.map((line) => JSON.parse(line) as PrintedLine);
  const spans = printed.flatMap(({ span }) => (span === undefined ? [] : [span]));
  return { exitCode: exitCode as number, spans, printed };
};

/** Runs a process that ends in the middle of a call. Returns its spans, and a store with what its journal recorded. */
export const endedProcess = async () => {
  const { exitCode, spans, printed } = await run(ending);
  const driver = inProcessCalls();
  await append(
    driver,
    printed.flatMap(({ records = [] }) => records),
  );
  return { exitCode, spans, store: createCallStore(driver) };
};

/** Runs a process that suspends a call. Returns its spans, and the state of the session. */
export const suspendingProcess = async () => {
  const { exitCode, spans, printed } = await run(suspending);
  return { exitCode, spans, state: printed.at(-1)?.state };
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
