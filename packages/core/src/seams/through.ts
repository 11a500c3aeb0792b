import { identity, isObservable, type Observable, throwError } from 'rxjs';
import { andThen, atOnce, type Eventual, observed, recover } from '../flow/eventual.js';
import { contained } from '../flow/contained.js';
import { oneValue } from '../flow/one-value.js';
import type { Model } from '../models/model.js';
import { cell } from '../step.js';
import { MillraceError, toMillraceError } from '../values/errors.js';
import { isRecord } from '../values/json.js';
import { type CallInfo, type Reply, withOwnText } from '../values/reply.js';
import { type Hook, isInterceptor } from './interceptor.js';
import type { Call } from './call.js';
import type { Answer, Context, Layer, PhaseFactory } from './layer.js';
import { isLayer } from './read-use.js';

/** The layers of a call, outermost first: its own and inherited ones. Of several `single` ones of a name, the inherited one stays, or else the last. */
export const layersOf = (own: readonly Layer[], inherited: readonly Layer[]): readonly Layer[] => {
  const all = new Set([...inherited, ...replaced(own)]);
  const above = new Set(inherited);
  const isReplaced = ({ name, single }: Layer): boolean =>
    single === true && inherited.some((layer) => layer.single === true && layer.name === name);
  return [...all]
    .filter((layer) => above.has(layer) || !isReplaced(layer))
    .sort((a, b) => priorityOf(a) - priorityOf(b));
};

const replaced = (layers: readonly Layer[]): readonly Layer[] =>
  layers.filter(
    ({ name, single }, index) =>
      single !== true ||
      !layers.slice(index + 1).some((later) => later.single === true && later.name === name),
  );

export const handedDown = (layers: readonly Layer[], speaks: boolean): readonly Layer[] =>
  layers.filter(({ inherit }) => inherit === true || (inherit === 'voice' && speaks));

export const answerThrough = (
  layers: readonly Layer[],
  context: Context,
  innermost: Answer,
): Answer =>
  layers.reduceRight<Answer>((next, layer) => {
    const { name, call } = layer;
    if (call === undefined) return next;
    return trustedOnes.has(layer) ? call(context)(next) : checkedAnswer(name, context, next, call);
  }, innermost);

export const trustedOnes = new WeakSet<Layer>();

/** Marks a layer of this package: it is not checked at run time, and an error that passes it does not name it. */
export const trusted = <Own extends Layer>(layer: Own): Own => {
  trustedOnes.add(layer);
  return layer;
};

const resumingOnes = new WeakSet<Layer>();

/** Marks a layer that resumes its call. */
export const resuming = <Own extends Layer>(layer: Own): Own => {
  resumingOnes.add(layer);
  return layer;
};

/** Whether a call is resumed. */
export const isResumed = ({ layers }: Pick<Context, 'layers'>): boolean =>
  layers.some((layer) => resumingOnes.has(layer));

/** The layers that run the hooks of a call. */
export const layersFor = (hooks: readonly Hook[]): readonly Layer[] => [
  ...new Set(hooks.flatMap((hook) => (hook.kind === 'prepare' ? hook.layer : [])).filter(isLayer)),
];

export const hooksOf = (layers: readonly Layer[]): readonly Hook[] =>
  layers.flatMap((layer) => [
    ...(isInterceptor(layer) ? [layer.hook] : []),
    ...(layer.on ?? []).map(({ hook }) => hook),
  ]);

export const recordThrough = <T>(
  layers: readonly Layer[],
  context: Context,
  call$: Observable<T>,
): Observable<T> =>
  layers.reduceRight(
    (next$, { name, record }) =>
      record === undefined ? next$ : made(name, () => record(context))(next$),
    call$,
  );

/** Checks that a layer passes a call on once, and answers with one reply. */
const checkedAnswer =
  (name: string, context: Context, next: Answer, around: Required<Layer>['call']): Answer =>
  (call) =>
    observed(() => {
      let hasPassed = false;
      // An error from further in is not this layer's, and keeps its message.
      let failure: unknown;
      let passed: Reply | undefined;
      const passOn = (edited: Call): Eventual<Reply> => {
        if (hasPassed) throw layerFault(name, 'passed the call on twice', failure);
        if (!isCall(edited)) throw layerFault(name, 'passed on something that is not a call');
        hasPassed = true;
        const replied = recover(
          () => atOnce(next(edited)),
          (cause) => {
            failure = cause;
            throw cause;
          },
        );
        return andThen(replied, (reply) => (passed = reply));
      };
      const answered = (): Eventual<Reply> =>
        oneValue(
          foreign(around(context)((edited) => observed(() => passOn(edited)))(call)),
          () => layerFault(name, 'answered with two replies'),
          () => throwError(() => layerFault(name, 'answered with no reply')),
        );
      const checked = (reply: unknown): Reply => {
        if (isReply(reply)) return withOwnText(ownReply(reply, context.info), passed);
        throw layerFault(name, 'emitted something that is not a reply');
      };
      return recover(
        () => andThen(answered(), checked),
        (cause) => {
          throw cause === failure
            ? cause
            : toMillraceError(cause, 'unknown', `In the layer '${name}'`);
        },
      );
    });

const foreign = <T>(given: Observable<T>): Eventual<T> => {
  const value = atOnce(given);
  return isObservable(value) ? value.pipe(contained()) : value;
};

/** Gives a cached reply of another call an id of this call: memory would take it for a known message. */
const ownReply = (reply: Reply, { callId }: CallInfo): Reply =>
  reply.id.startsWith(`${callId}/`) ? reply : { ...reply, id: `${callId}/answer` };

const isCall = (value: unknown): boolean =>
  isRecord(value) && Array.isArray(value['input']) && Array.isArray(value['history']);

const isReply = (value: unknown): value is Reply =>
  isRecord(value) && typeof value['reason'] === 'string' && Array.isArray(value['content']);

const layerFault = (name: string, what: string, cause?: unknown): MillraceError =>
  new MillraceError(
    'invalidState',
    `The layer '${name}' has ${what}. Pass a call on no more than once, and emit one reply: that of 'next', or one of answerWith().`,
    { cause },
  );

/** Makes a part of a layer; an error names the layer. */
export const made = <T>(name: string, make: () => T): T => {
  try {
    return make();
  } catch (cause) {
    throw toMillraceError(cause, 'unknown', `In the layer '${name}'`);
  }
};

/** Wraps a model in the layers of the call. Each layer creates its part once. */
export const modelThrough = (context: Context, model: Model): Model => {
  const composed = context.local(wraps);
  composed.models ??= context.layers.flatMap((layer) =>
    layer.model === undefined ? [] : [made(layer.name, () => layer.model?.(context) ?? identity)],
  );
  return composed.models.reduceRight((next, wrap) => wrap(next), model);
};

const wraps = cell('call', (): { models?: readonly ((model: Model) => Model)[] } => ({}));

/** Runs the phases of a turn through the layers: the outermost last, equal ones in order. */
export const turnThrough = (
  layers: readonly Layer[],
  phases: readonly PhaseFactory[],
): readonly PhaseFactory[] =>
  layers
    .toSorted((a, b) => priorityOf(b) - priorityOf(a))
    .reduce((list, { name, turn }) => {
      if (turn === undefined) return list;
      try {
        return turn(list);
      } catch (cause) {
        throw toMillraceError(cause, 'config', `The 'turn' of the layer '${name}' failed`);
      }
    }, phases);

export const priorityOf = ({ priority = 100 }: Layer): number => priority;
