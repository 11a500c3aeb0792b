import { concatMap, map, type Observable, of } from 'rxjs';
import { stoppedMessage } from '../end-interrupted.js';
import { type Layer, type LayerContext, trusted } from '../layer.js';
import { textOf } from '../message.js';
import { readOutput$ } from '../read-output.js';
import type { Reply } from '../reply.js';
import type { Call } from './call.js';

/** Sends the reply through the interceptors of `postCall`, whichever layer further in has made it. */
export const reviewing: Layer = trusted({
  name: 'postCall',
  priority: 75,
  call:
    ({ call, hooks, perform }) =>
    (next) =>
    (prepared) =>
      next(prepared).pipe(
        concatMap((reply) =>
          perform({
            kind: 'reply',
            id: 'reply',
            input: reply,
            run: () => reviewed$({ call, hooks }, prepared.output, reply),
          }),
        ),
      ),
});

const reviewed$ = (
  { call, hooks }: Pick<LayerContext, 'call' | 'hooks'>,
  output: Call['output'],
  reply: Reply,
): Observable<Reply> =>
  hooks.intercepted$(reply.iterations, { type: 'postCall', reply }, (event) =>
    event === undefined
      ? of(stopped(call, reply))
      : withOutput$(output, reply, sameReply(reply, event.reply)),
  );

/** An output that was read from a text which an interceptor has edited is read again: it must not say what the text does not. */
const withOutput$ = (
  output: Call['output'],
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

/** The reply of a call whose reply an interceptor vetoed. */
const stopped = (call: LayerContext['call'], { output: _output, ...reply }: Reply): Reply => ({
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
