import { identity, type Observable } from 'rxjs';
import type { Model } from '../models/model.js';
import { cell } from '../step.js';
import { toMillraceError } from '../values/errors.js';
import type { Answer, Context, Layer, PhaseFactory } from './layer.js';
import { checkedAnswer } from './checked-answer.js';

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

/** Marks the layer of a journal that continues a call from its record. */
export const resuming = <Own extends Layer>(layer: Own): Own => {
  resumingOnes.add(layer);
  return layer;
};

/** Whether a call is resumed. */
export const isResumed = ({ layers }: Pick<Context, 'layers'>): boolean =>
  layers.some((layer) => resumingOnes.has(layer));

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

/** Runs the phases of a turn through the layers: inner ones edit first, and of equal ones the earlier in the list. */
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
