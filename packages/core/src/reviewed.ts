import { concatMap, defaultIfEmpty, map, type Observable, of } from 'rxjs';
import { stoppedMessage } from './end-stopped.js';
import type { CallContext } from './pipeline/call-stage.js';
import type { CallState } from './pipeline/call-state.js';
import { type Message, textOf } from './message.js';
import { readOutput$ } from './read-output.js';
import type { Reply } from './reply.js';
import type { EndedRun } from './run.js';
import { suspensionsIn } from './tools/suspend.js';

/** Makes the reply of a run, and leads it through the interceptors of `postCall`. */
export const reviewed$ = (
  { call, hooks, scheduler }: Pick<CallContext, 'call' | 'hooks' | 'scheduler'>,
  { plan: { output }, createdAt, sources }: Pick<CallState, 'plan' | 'createdAt' | 'sources'>,
  run: EndedRun,
): Observable<Reply> => {
  const reply: Reply = {
    ...run.answer,
    reason: run.status,
    finish: run.finish,
    ...(run.output === undefined ? {} : { output: run.output }),
    ...(run.status === 'suspended' && {
      suspensions: run.suspensions ?? suspensionsIn(run.messages),
    }),
    ...(sources.length > 0 && { sources }),
    iterations: run.iteration,
    toolUses: run.toolRuns,
    usage: run.usage,
    usageByPhase: run.usageByPhase,
    createdAt,
    elapsedMs: scheduler.now() - createdAt,
  };
  return hooks.intercepted$(run.iteration, { type: 'postCall', reply }).pipe(
    concatMap((event) => withOutput$(output, reply, sameReply(reply, event.reply))),
    defaultIfEmpty(stopped(call, reply)),
  );
};

/** An output that was read from a text which an interceptor has edited is read again: it must not say what the text does not. */
const withOutput$ = (
  output: CallState['plan']['output'],
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
const stopped = (call: CallContext['call'], { output: _output, ...reply }: Reply): Reply => ({
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
export const unstored = (
  { messages, stored }: EndedRun,
  { id, role, name, content }: Reply,
): readonly Message[] => {
  const last: Message = { id, role, content, ...(name === undefined ? {} : { name }) };
  return [...messages.slice(stored), ...(content.length > 0 ? [last] : [])];
};
