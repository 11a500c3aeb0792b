import { map, type Observable } from 'rxjs';
import { andThen, atOnce, type Eventual, deferWork } from '../../flow/eventual.js';
import { stoppedMessage } from '../../phases/limit.js';
import { type AnswerForm, answerForm } from '../../seams/call.js';
import type { Layer, Context } from '../../seams/layer.js';
import { perform } from '../../seams/steps.js';
import { trusted } from '../../seams/through.js';
import { answerTextOf } from '../../values/message.js';
import { type Reply, withOwnText } from '../../values/reply.js';
import { layerPlaces } from '../../seams/layer-places.js';

/** Runs the reply through the interceptors of `postCall`, before it is stored. */
export const postCallLayer: Layer = trusted({
  name: 'postCall',
  priority: layerPlaces.postCall,
  call: (context) => (next) => (call) =>
    deferWork(() =>
      andThen(atOnce(next(call)), (reply) =>
        perform(context, {
          kind: 'reply',
          id: 'reply',
          input: reply,
          work: () => reviewed(context, reply),
        }),
      ),
    ),
});

const reviewed = (
  { info: call, hooks, local }: Pick<Context, 'info' | 'hooks' | 'local'>,
  reply: Reply,
): Eventual<Reply> =>
  hooks.intercept(reply.iterations, { type: 'postCall', reply }, (event) =>
    event === undefined
      ? stopped(call, reply)
      : withOutput(local(answerForm).required, reply, sameReply(reply, event.reply)),
  );

/** Reads the output again if an interceptor edited the text, so that they match. */
const withOutput = (
  required: AnswerForm | undefined,
  reply: Reply,
  { output: given, ...edited }: Reply,
): Reply | Observable<Reply> => {
  const isStale =
    required !== undefined &&
    given === reply.output &&
    answerTextOf(edited) !== answerTextOf(reply);
  if (!isStale) return given === undefined ? edited : { ...edited, output: given };
  return required
    .read$(answerTextOf(edited))
    .pipe(map((read) => (read.valid ? { ...edited, output: read.value } : edited)));
};

const stopped = (call: Context['info'], { output: _output, ...reply }: Reply): Reply => ({
  ...reply,
  ...stoppedMessage(call),
  reason: 'stopped',
});

const sameReply = (before: Reply, given: Reply): Reply => {
  const edited = withOwnText(given, before);
  const content = edited.content.filter(({ type }) => type !== 'tool_call');
  return { ...edited, id: before.id, role: before.role, content };
};
