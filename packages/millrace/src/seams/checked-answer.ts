import type { Context, Answer, Layer } from './layer.js';
import { deferWork, type Eventual } from '../flow/eventual.js';
import { gather, oneValue } from '../flow/gather.js';
import { type Reply, withOwnText, type CallInfo } from '../values/reply.js';
import type { Call } from './call.js';
import { EMPTY, throwError } from 'rxjs';
import { toMillraceError, MillraceError } from '../values/errors.js';
import { hearContained } from '../flow/contained.js';
import { isRecord } from '../values/json.js';

/**
 * The `call` of a layer of users, checked: it passes the call on no more than once, and answers with one reply. A reply whose text alone was
 * edited gets the content to match; one of another call gets an id of this call.
 */
export const checkedAnswer =
  (name: string, context: Context, next: Answer, around: Required<Layer>['call']): Answer =>
  (call) =>
    deferWork(() => {
      let hasPassed = false;
      // An error from further in is not this layer's, and keeps its message.
      let failure: unknown;
      let inner: Reply | undefined;
      const checkedNext = (edited: Call): Eventual<Reply> => {
        if (hasPassed) throw layerFault(name, 'passed the call on twice', failure);
        if (!isCall(edited)) throw layerFault(name, 'passed on something that is not a call');
        hasPassed = true;
        return gather<Reply, Reply | undefined, Reply>(
          () => next(edited),
          {
            seed: undefined,
            add: (_, reply) => (inner = reply),
            finish: (reply) => reply ?? EMPTY,
          },
          {
            handle: (cause) => {
              failure = cause;
              throw cause;
            },
          },
        );
      };
      const read = (reply: unknown): Reply => {
        if (isReply(reply)) return withOwnText(ownReply(reply, context.info), inner);
        throw layerFault(name, 'emitted something that is not a reply');
      };
      return gather(
        () => around(context)((edited) => deferWork(() => checkedNext(edited)))(call),
        oneValue(
          read,
          () => layerFault(name, 'answered with two replies'),
          () => throwError(() => layerFault(name, 'answered with no reply')),
        ),
        {
          listen: hearContained,
          handle: (cause) => {
            throw cause === failure
              ? cause
              : toMillraceError(cause, 'unknown', `In the layer '${name}'`);
          },
        },
      );
    });

/** Gives a cached reply of another call an id of this call: memory would take it for a known message. */
const ownReply = (reply: Reply, { callId }: CallInfo): Reply =>
  reply.id.startsWith(`${callId}/`) ? reply : { ...reply, id: `${callId}/answer` };

/** Whether a value has the parts of a call. */
export const isCall = (value: unknown): boolean =>
  isRecord(value) && Array.isArray(value['input']) && Array.isArray(value['history']);

/** Whether a value has the parts of a reply. */
export const isReply = (value: unknown): value is Reply =>
  isRecord(value) && typeof value['reason'] === 'string' && Array.isArray(value['content']);

const layerFault = (name: string, what: string, cause?: unknown): MillraceError =>
  new MillraceError(
    'invalidState',
    `The layer '${name}' has ${what}. Pass a call on no more than once, and emit one reply: that of 'next', or one of answerWith().`,
    { cause },
  );
