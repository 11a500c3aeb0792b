import {
  concat,
  concatMap,
  defaultIfEmpty,
  defer,
  map,
  type Observable,
  of,
  type OperatorFunction,
} from 'rxjs';
import { frozen } from './frozen.js';
import { discard } from './discard.js';
import { stoppedMessage } from './end-stopped.js';
import type { Context } from './context.js';
import { type Message, textOf } from './message.js';
import { readOutput$ } from './read-output.js';
import { remember$ } from './remember.js';
import type { Reply } from './reply.js';
import type { EndedRun } from './run.js';
import { suspensionsIn } from './tools/suspend.js';

type Needs = Pick<Context, 'call' | 'hooks' | 'memory' | 'scheduler' | 'output'>;

/**
 * Completes a call: interceptors have the last word on the reply, then memory gets what it lacks, the
 * final message included; `beforeLast` is told of the reply, and `postCall` is the last event.
 */
export const complete = (
  context: Needs,
  createdAt: number,
  beforeLast: (reply: Reply) => void,
): OperatorFunction<EndedRun, Reply> =>
  concatMap((run) => {
    const { hooks, scheduler } = context;
    const reply: Reply = {
      ...run.answer,
      reason: run.status,
      finish: run.finish,
      ...(run.output === undefined ? {} : { output: run.output }),
      ...(run.status === 'suspended' && { suspensions: suspensionsIn(run.messages) }),
      iterations: run.iteration,
      toolUses: run.toolRuns,
      usage: run.usage,
      createdAt,
      elapsedMs: scheduler.now() - createdAt,
    };
    return hooks.intercepted$(run.iteration, { type: 'postCall', reply }).pipe(
      concatMap((event) => withOutput$(context, reply, sameReply(reply, event.reply))),
      defaultIfEmpty(stopped(context, reply)),
      concatMap((final) =>
        concat(
          remember$(context.memory, unstored(run, final), run.late),
          defer(() => {
            const last = frozen(final);
            beforeLast(last);
            if (final.id !== run.answer.id) discard(context, run.iteration, run.answer, 'stopped');
            hooks.report(run.iteration, { type: 'postCall', reply: last });
            return of(last);
          }),
        ),
      ),
    );
  });

/** An output that was read from a text which an interceptor has edited is read again: it must not say what the text does not. */
const withOutput$ = (
  { output }: Needs,
  reply: Reply,
  { output: given, ...edited }: Reply,
): Observable<Reply> => {
  const isStale =
    output !== undefined && given === reply.output && textOf(edited) !== textOf(reply);
  if (!isStale) return of(given === undefined ? edited : { ...edited, output: given });
  return readOutput$(output, textOf(edited)).pipe(
    map((read) => (read.valid ? { ...edited, output: read.value } : edited)),
  );
};

/** The reply of a call whose reply an interceptor would not have. */
const stopped = ({ call }: Needs, { output: _output, ...reply }: Reply): Reply => ({
  ...reply,
  ...stoppedMessage(call),
  reason: 'stopped',
});

/** An edited reply is still the same message, and asks for no tools. */
const sameReply = ({ id, role }: Reply, edited: Reply): Reply => ({
  ...edited,
  id,
  role,
  content: edited.content.filter(({ type }) => type !== 'tool_use'),
});

/** What memory lacks: the messages since it was last written, and the final one unless it is empty. */
const unstored = (
  { messages, stored }: EndedRun,
  { id, role, name, content }: Reply,
): readonly Message[] => {
  const last: Message = { id, role, content, ...(name === undefined ? {} : { name }) };
  return [...messages.slice(stored), ...(content.length > 0 ? [last] : [])];
};
