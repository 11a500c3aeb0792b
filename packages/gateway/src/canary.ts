import {
  aroundModel,
  type CallInfo,
  fallback,
  hasContent,
  isMillraceError,
  type Layer,
  MillraceError,
  type Model,
} from 'millrace';
import { checkOptions, fnv1a, isFunction, isText, messageOf, type Rule } from 'millrace/values';
import { catchError, defer, of, tap } from 'rxjs';
import { choosingLayer, innermostPlace } from './choose-model.js';
import { isModel, keyFrom, ready, userOf } from './model-parts.js';

/** Which share of the calls a candidate answers. */
export interface CanaryOptions {
  /** The candidate. */
  readonly model: Model;
  /** The share of calls that it answers, from 0 to 1. */
  readonly share: number;
  /** The key that stays with one model: calls with the same key get the same model. Default: `metadata.userId`, else the session, else each call. */
  readonly by?: ((call: CallInfo) => string | undefined) | undefined;
  /** The name of the experiment: canaries of different names choose independently. Default: `canary`. */
  readonly name?: string | undefined;
}

/**
 * Lets a candidate answer a stable share of the calls, such as a new model for 5 % of the users. A hash decides, so a user
 * stays with a model, also when the share grows. If the candidate fails before its first content, with any error, the agent's
 * own model answers, and `modelFallback` says why. A choice of the candidate emits `modelChosen`, and a journal records each.
 *
 * @example
 * ```ts
 * const agent = createAgent({ model: stable, use: [canary({ model: candidate, share: 0.05 })] });
 * ```
 */
export const canary = (options: CanaryOptions): Layer => {
  checkOptions('canary()', options, rules, ['model', 'share']);
  const { share, by = userOrSession, name = 'canary' } = options;
  const candidate = yielding(ready(options.model));
  const layer = choosingLayer({
    name,
    // A router chooses what stands for the agent's own model here.
    priority: innermostPlace - 1,
    position: () => `canary/${name}`,
    choose$: ({ info: call }) => {
      const key = keyFrom("canary(): 'by'", by(call)) ?? call.callId;
      const isCandidate = shareOf(`${name} ${key}`) < share;
      return of(
        isCandidate
          ? { key: 'candidate', why: `one of the share of ${share}` }
          : { why: `not one of the share of ${share}` },
      );
    },
    modelOf: ({ key }, own) => (key === undefined ? undefined : fallback(candidate, own)),
  });
  return { ...layer, single: true };
};

/** Makes each error before the first content one after which the next model is asked. */
const yielding = (model: Model): Model =>
  aroundModel(model, (request, context) =>
    defer(() => {
      let isShown = false;
      return model.stream$(request, context).pipe(
        tap((chunk) => {
          isShown ||= hasContent(chunk);
        }),
        catchError((cause: unknown) => {
          throw isShown ? cause : passing(cause);
        }),
      );
    }),
  );

const passing = (cause: unknown): MillraceError => {
  if (!isMillraceError(cause)) {
    const why = messageOf(cause);
    return new MillraceError('unknown', `The candidate failed: ${why}`, { cause, retryable: true });
  }
  return cause.retryable
    ? cause
    : new MillraceError(cause.code, cause.message, { cause, retryable: true });
};

const userOrSession = (call: CallInfo): string | undefined => {
  const user = userOf(call);
  if (user !== undefined) return user;
  return 'sessionId' in call && typeof call.sessionId === 'string' ? call.sessionId : undefined;
};

/** A number in [0, 1) for a key, always the same: a hash, mixed so that similar texts differ. */
const shareOf = (text: string): number => {
  const hash = fnv1a(text);
  const mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  const spread = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return ((spread ^ (spread >>> 16)) >>> 0) / 2 ** 32;
};

const rules: Readonly<Record<keyof CanaryOptions, Rule>> = {
  model: isModel,
  share: [(value) => typeof value === 'number' && value >= 0 && value <= 1, 'a number from 0 to 1'],
  by: isFunction,
  name: isText,
};
