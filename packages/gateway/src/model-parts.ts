import {
  answerTool,
  type CallInfo,
  isMillraceError,
  MillraceError,
  type Model,
  timeouts,
} from 'millrace';
import { having, messageOf, type Rule } from 'millrace/values';

/** A rule for options that take a model. */
export const isModel: Rule = having('stream$', "a model, such as openai('gpt-5-mini')");

export const isDuration: Rule = [
  (value) => Number.isFinite(value) && Number(value) > 0,
  'a number of milliseconds above 0',
];

export const isShare: Rule = [
  (value) => typeof value === 'number' && value > 0 && value <= 1,
  'a number above 0, up to 1',
];

/** Wraps a model so that it supports `outputSchema`. */
export const structured = (model: Model): Model =>
  model.unsupported?.includes('outputSchema') === true ? answerTool(model) : model;

/** Wraps a model so that it does what the agent's own model does: it keeps time, and supports `outputSchema`. */
export const ready = (model: Model): Model => timeouts(structured(model));

/** The user of a call. An empty id counts as absent: otherwise, all who are not logged in would share answers. */
export const userOf = ({ metadata }: CallInfo): string | undefined =>
  Object.hasOwn(metadata, 'userId') && metadata['userId'] !== '' ? metadata['userId'] : undefined;

/**
 * Returns the key of a call that a function of the program gave: a string, or none. An empty one counts as none: otherwise, all
 * calls without one would share it. Anything else, such as a promise, would be the same text for everyone.
 */
export const keyFrom = (owner: string, key: unknown): string | undefined => {
  if (key === undefined || key === null || key === '') return undefined;
  if (typeof key === 'string') return key;
  const kind = isEventual(key) ? 'a promise: compute it before the call' : `this ${typeof key}`;
  throw new MillraceError(
    'config',
    `${owner} must return a string, or undefined for none, not ${kind}.`,
  );
};

const isEventual = having('then', '')[0];

/** The error of a model or a source of the program, and a sentence that names the fix, if there is one. */
export const failureOf = (what: string, cause: unknown, fix = ''): MillraceError => {
  if (isMillraceError(cause) && (fix === '' || cause.code === 'config')) return cause;
  const why = messageOf(cause);
  const message = `${what} failed: ${why.replace(/\.?$/u, '.')}${fix}`;
  return new MillraceError('unknown', message, { cause });
};
