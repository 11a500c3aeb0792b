import { type MonoTypeOperatorFunction, type Observable, of } from 'rxjs';
import type { CallInfo } from '../values/reply.js';
import type { ChunkStage, MessageChunk } from '../models/chunk-transform.js';
import { misuse } from '../values/errors.js';
import type { AgentEvent, EventOf, ModifiableEvent, ModifiableType } from '../events.js';
import { isEvent, modifiableTypes } from '../events.js';
import { isRecord } from '../values/json.js';
import { checkOptions, isFlag, isNumber, isText, type Rule } from '../values/options.js';
import type { Preparation } from './preparation.js';

/** Name, order and error handling of an interceptor. */
export interface InterceptorOptions {
  /** The name in events and errors. Default: its kind and its position among interceptors without a name. */
  readonly name?: string | undefined;
  /** Lower runs first; equal ones run in the given order. Default: 100. */
  readonly priority?: number | undefined;
  /** Whether an error is ignored, with a `handlerError` event, instead of failing the call. Default: false. */
  readonly failOpen?: boolean | undefined;
}

/**
 * A layer that intercepts or watches events: of `on`, `onCall`, `prepare`, `transformChunks` and `watch`.
 *
 * An interceptor is an RxJS operator on one type of event, and the loop waits until it completes. What it emits is what happens: an edited
 * event changes the tool call, the result or the reply, and an empty stream is a veto. A watcher sees events after all edits, and changes nothing.
 *
 * @example
 * ```ts
 * import { createAgent, type Interceptor, on, textBlock, tool, watch } from 'millrace';
 * import { scriptedModel, text, toolCall } from 'millrace/testing';
 * import { filter, map } from 'rxjs';
 *
 * const rules: readonly Interceptor[] = [
 *   on(
 *     'preActing',
 *     filter(({ toolCall: { name } }) => name !== 'delete'),
 *   ),
 *   on(
 *     'postActing',
 *     map((event) => {
 *       const content = [textBlock('42 files, the names are hidden.')];
 *       return event.result.isError ? event : { ...event, result: { ...event.result, content } };
 *     }),
 *   ),
 *   watch((event) => {
 *     if (event.type === 'postActing') console.log(event.toolCall.name, event.result.content);
 *   }),
 * ];
 *
 * const list = tool({ name: 'list', description: 'Lists files.', run: () => 'secret.txt …' });
 * const remove = tool({ name: 'delete', description: 'Deletes all files.', run: () => 'Deleted.' });
 * const model = scriptedModel([toolCall('list'), toolCall('delete')], [text('Done.')]);
 * await createAgent({ model, tools: [list, remove], use: [rules].flat() }).call('Clean up!');
 * ```
 *
 * ```text
 * list [ { type: 'text', text: '42 files, the names are hidden.' } ]
 * delete [ { type: 'text', text: 'Not run: this tool call was rejected.' } ]
 * ```
 */
export interface Interceptor {
  readonly name: string;
  readonly hook: Hook;
}

export type Hook = EventHook | PrepareHook | ChunkHook | WatchHook;

interface Placed extends InterceptorOptions {
  readonly priority: number;
  readonly failOpen: boolean;
}

export interface EventHook extends Placed {
  readonly kind: 'event';
  readonly type: ModifiableType;
  readonly open: (call: CallInfo) => (event: ModifiableEvent) => Observable<AgentEvent>;
}

interface PrepareHook extends Placed {
  readonly kind: 'prepare';
  readonly operator: MonoTypeOperatorFunction<Preparation>;
  /** The layer that runs hooks of this kind. Calls with one have it. */
  readonly layer: object;
}

export interface ChunkHook extends Placed {
  readonly kind: 'chunks';
  readonly transform: (
    stage: Pick<ChunkStage, 'name' | 'onPassedOver'>,
  ) => MonoTypeOperatorFunction<MessageChunk>;
}

interface WatchHook extends Placed {
  readonly kind: 'watch';
  readonly handle: (event: AgentEvent, call: CallInfo) => unknown;
}

/**
 * Applies an operator to every event of one type, each in a separate stream. Emit one value, edited or not, to
 * continue, none to veto; two, or another type, are an error. The loop waits until it completes.
 *
 * @example
 * ```ts
 * const readOnly = on('preActing', filter(({ toolCall }) => toolCall.name !== 'delete_file')); // a veto
 * const agent = createAgent({ model, tools, use: [readOnly] });
 * ```
 */
export const on = <Type extends ModifiableType>(
  type: Type,
  operator: MonoTypeOperatorFunction<EventOf<Type>>,
  options: InterceptorOptions = {},
): Interceptor => onCall(type, () => operator, options);

/**
 * As `on`, but creates the operator for each call. It is subscribed for each event, so keep state in variables of the
 * function: an index of `map` or the state of `scan` starts again each time.
 */
export const onCall = <Type extends ModifiableType>(
  type: Type,
  build: (call: CallInfo) => MonoTypeOperatorFunction<EventOf<Type>>,
  options: InterceptorOptions = {},
): Interceptor => {
  if (!modifiableTypes.includes(type)) {
    const given: string = type;
    const streamed =
      given === 'reasoningChunk'
        ? ' To change a message while it streams, use transformChunks(operator).'
        : '';
    throw misuse(
      `on(): '${type}' cannot be intercepted, only watched with watch(handler).${streamed} Types that can be: ${modifiableTypes.join(', ')}.`,
    );
  }
  return interceptor({
    kind: 'event',
    type,
    ...placed(`on('${type}')`, build, options),
    open: (call) => {
      const operator = build(call);
      return (event) => (isEvent(event, type) ? of(event).pipe(operator) : of(event));
    },
  });
};

/** Passes every event of the agent's calls to a handler. Errors of the handler only emit `handlerError`. */
export const watch = (
  handle: (event: AgentEvent, call: CallInfo) => unknown,
  options: Pick<InterceptorOptions, 'name'> = {},
): Interceptor =>
  interceptor({ kind: 'watch', handle, ...placed('watch()', handle, options, { name: isText }) });

export const interceptor = (hook: Hook): Interceptor => ({
  name: hook.name ?? labelOf(hook),
  hook,
});

export const isInterceptor = (value: unknown): value is Interceptor =>
  isRecord(value) && isRecord(value['hook']) && typeof value['hook']['kind'] === 'string';

export const ordered = <Kind extends Hook['kind']>(
  hooks: readonly Hook[],
  kind: Kind,
): readonly (Extract<Hook, { kind: Kind }> & { readonly name: string })[] => {
  let unnamed = 0;
  return hooks
    .map((hook) => ({ ...hook, name: hook.name ?? `${labelOf(hook)} at position ${++unnamed}` }))
    .filter((hook): hook is Extract<typeof hook, { kind: Kind }> => hook.kind === kind)
    .sort((a, b) => a.priority - b.priority);
};

const labelOf = (hook: Hook): string =>
  hook.kind === 'event' ? `on('${hook.type}')` : labels[hook.kind];

const labels = { prepare: 'prepare()', chunks: 'transformChunks()', watch: 'watch()' } as const;

export const placed = (
  owner: string,
  work: unknown,
  options: InterceptorOptions,
  allowed: Readonly<Record<string, Rule>> = rules,
): Placed => {
  if (typeof work !== 'function') throw misuse(`${owner} takes a function, not ${typeof work}.`);
  checkOptions(owner, options, allowed);
  const { name, priority = 100, failOpen = false } = options;
  return { priority, failOpen, ...(name === undefined ? {} : { name }) };
};

const rules: Readonly<Record<keyof InterceptorOptions, Rule>> = {
  name: isText,
  priority: isNumber,
  failOpen: isFlag,
};
