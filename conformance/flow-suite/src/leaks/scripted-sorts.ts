import {
  type AgentEvent,
  createAgent,
  type Demand,
  fromPull,
  inProcessMemory,
  type Memory,
  type Model,
  type ModelChunk,
  type ModelContext,
  type ModelRequest,
  tool,
  toReadableStream,
} from 'millrace';
import { sessions } from 'millrace/sessions';
import { finish, text, toolCall } from 'millrace/testing';
import { NEVER, type Observable, of, startWith, throwError } from 'rxjs';
import { outcomeOf } from '../outcome-of.js';
import { ends, type Stop, stopNames, stops } from '../stops.js';
import type { Shared } from './shared.js';
import type { Sort } from './sort.js';

/** Calls of every sort, of models that play a script. */
export const scriptedSorts = ({ ledger, options }: Shared): readonly Sort[] => {
  const modelOf = (
    answer$: (request: ModelRequest, context: ModelContext) => Observable<ModelChunk>,
  ): Model => ({
    name: 'script',
    stream$: (request, context) => answer$(request, context).pipe(ledger.counted()),
  });
  const answers = modelOf((_request, { demand }) => fromPull(words, demand));
  const endless = modelOf(() => NEVER.pipe(startWith(text('On '))));
  const fails = modelOf(() => throwError(() => new Error('The model is broken.')));
  const works = modelOf(({ messages }) =>
    messages.at(-1)?.role === 'tool' ? of(text('Done.'), finish()) : of(toolCall('work'), finish()),
  );
  const { demand: _open, ...pulledOptions } = options;
  /** Every session has a memory of its own, which must go with it. */
  const memory = (id: string): Memory => ledger.held(inProcessMemory()(id));
  const plain = createAgent({ model: answers });
  const broken = createAgent({ model: fails });
  const run$ = (): Observable<unknown> => of('half', 'whole').pipe(ledger.counted());
  const worker = createAgent({ model: works, tools: [tool({ ...work, run: run$ })] });
  const manager = createAgent({
    model: works,
    tools: [tool({ ...work, run: (_input, parent) => plain.call$('Work.', { parent }) })],
  });
  const talker = createAgent({ model: endless });
  const hanging$ = (): Observable<unknown> => NEVER.pipe(ledger.counted());
  const hanger = createAgent({ model: works, tools: [tool({ ...work, run: hanging$ })] });

  const stopped = (stop: Stop): readonly Sort[] =>
    [talker, hanger].map((agent) => ({
      name: `${stop} in a ${agent === talker ? 'stream' : 'tool'}`,
      ends: ends[stop],
      call: (id) => {
        const call = stops[stop](sessions(agent, { memory }).open(id), options);
        call.stop();
        return call.settled;
      },
    }));
  return [
    { name: 'plain', ends: 'answer', call: () => outcomeOf(plain.call('Hello.', options)) },
    { name: 'with a tool', ends: 'answer', call: () => outcomeOf(worker.call('Work.', options)) },
    {
      name: 'in a session',
      ends: 'answer',
      call: (id) => outcomeOf(sessions(worker, { memory }).open(id).call('Work.', options)),
    },
    {
      name: 'with a sub-agent',
      ends: 'answer',
      call: () => outcomeOf(manager.call('Work.', options)),
    },
    { name: 'failing', ends: 'unknown', call: () => outcomeOf(broken.call('Hello.', options)) },
    {
      name: 'pulled, and left',
      ends: 'left',
      call: async () => {
        for await (const { type } of plain.stream('Hello.', pulledOptions)) {
          if (type === 'reasoningChunk') return 'left';
        }
        return 'not left';
      },
    },
    {
      name: 'read, and cancelled',
      ends: 'cancelled',
      call: async () => {
        const open = (demand: Demand): Observable<AgentEvent> =>
          plain.stream$('Hello.', { ...options, demand });
        const reader = toReadableStream(open).getReader();
        await reader.read();
        await reader.cancel();
        return 'cancelled';
      },
    },
    ...stopNames.flatMap(stopped),
  ];
};

const work = { name: 'work', description: 'Works.' };

async function* words(): AsyncGenerator<ModelChunk> {
  yield text('All ');
  yield await Promise.resolve(text('done.'));
  yield finish();
}
