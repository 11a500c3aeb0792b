import { type MillraceError, misuse } from '../values/errors.js';
import { isRecord } from '../values/json.js';
import { checkOptions, isFunction, isNumber, isText, oneOf, type Rule } from '../values/options.js';
import { isContextEntry } from '../tools/context-key.js';
import { isInterceptor, type Hook } from './interceptor.js';
import type { Layer } from './layer.js';

/** Reads the option `use`: a list of layers, some in lists of their own. Throws a `config` error that names the fix. */
export const readUse = (owner: string, use: unknown): readonly Layer[] => {
  if (use === undefined) return [];
  if (!Array.isArray(use)) throw noLayer(owner, use);
  return use.flat(Infinity).map((layer: unknown) => {
    if (!isLayer(layer)) throw noLayer(owner, layer);
    const isPart = (name: string): boolean => name !== 'name' && Object.hasOwn(rules, name);
    // A layer may have other properties, such as methods. Without any known part, one was misspelt.
    const hasPart = isInterceptor(layer) || Object.keys(layer).some(isPart);
    const parts = Object.entries(layer).filter(([name]) => !hasPart || isPart(name));
    const { name: _, ...rest } = Object.fromEntries(parts);
    checkOptions(`${owner}: The layer '${layer.name}'`, rest, rules);
    return layer;
  });
};

const rules: Readonly<Record<keyof Layer, Rule>> = {
  name: isText,
  priority: isNumber,
  inherit: oneOf(true, 'voice'),
  single: oneOf(true),
  labels: [(value) => isRecord(value) && !('type' in value), "an object without a label 'type'"],
  context: [
    (value) => Array.isArray(value) && value.every(isContextEntry),
    'a list of values of context keys, such as [key.of(value)]',
  ],
  record: isFunction,
  call: isFunction,
  step: isFunction,
  model: isFunction,
  turn: isFunction,
  on: [
    (value) => Array.isArray(value) && value.every(isInterceptor),
    'a list of interceptors, such as [on(type, operator)]',
  ],
};

export const isLayer = (value: unknown): value is Layer =>
  isRecord(value) && typeof value['name'] === 'string' && value['name'] !== '';

const noLayer = (owner: string, given: unknown): MillraceError =>
  misuse(
    typeof given === 'function'
      ? `${owner}: 'use' has a function, which probably returns the layer: call it, as in ${given.name || 'layer'}(…).`
      : `${owner}: 'use' takes a list of interceptors, such as on(type, operator), and layers: objects with a 'name' and some of ${Object.keys(rules).slice(1).join(', ')}.`,
  );

export const hooksOf = (layers: readonly Layer[]): readonly Hook[] =>
  layers.flatMap((layer) => [
    ...(isInterceptor(layer) ? [layer.hook] : []),
    ...(layer.on ?? []).map(({ hook }) => hook),
  ]);

/** The layers that run hooks of `prepare`: a call without such hooks does not have them. */
export const layersFor = (hooks: readonly Hook[]): readonly Layer[] => [
  ...new Set(hooks.flatMap((hook) => (hook.kind === 'prepare' ? hook.layer : [])).filter(isLayer)),
];
