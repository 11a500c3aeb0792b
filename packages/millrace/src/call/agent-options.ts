import type { InputSchema } from '../values/schema.js';
import type { Tool, ToolGroup } from '../tools/types.js';
import type { CallDefaults } from '../seams/preparation.js';
import type { Model } from '../models/model.js';
import type { Instructions } from './instructions.js';
import type { Use, Layer } from '../seams/layer.js';
import type { ContextEntry } from '../tools/context-key.js';
import { type Rule, isText, listOf } from '../values/options.js';
import { preparedRules, isContext } from './call-options.js';
import { toMillraceError, type MillraceError, misuse } from '../values/errors.js';
import { readUse } from '../seams/read-use.js';
import { turnThrough } from '../seams/through.js';
import { nativePhases } from '../loop.js';

export interface AgentOptions<
  Output extends InputSchema | undefined = InputSchema | undefined,
  Tools extends readonly (Tool | ToolGroup)[] = readonly (Tool | ToolGroup)[],
> extends CallDefaults {
  /** The name in events and for other agents. Default: `agent`. */
  readonly name?: string | undefined;
  readonly model: Model;
  /**
   * The system prompt: a string, a function that returns it for a call, or a list of both. Strings at the start of a list
   * are the same in every call, so vendors can cache them.
   */
  readonly instructions?: Instructions | undefined;
  /** Tools and tool groups. */
  readonly tools?: Tools | undefined;
  /**
   * Layers around every call, its steps, its models and its turns, such as `on('preActing', operator)`,
   * `output(schema)` and `insertBefore(reasoning, myPhase)`. Default: none.
   */
  readonly use?: Use<Output> | undefined;
  /** Values of context keys. Layers and calls override them. */
  readonly context?: readonly ContextEntry[] | undefined;
}

/** Options of an agent whose loop may not need a model. */
export type AnyAgentOptions<Output extends InputSchema | undefined> = Omit<
  AgentOptions<Output>,
  'model'
> & { readonly model?: Model };

export const agentRules: Readonly<Record<keyof AgentOptions, Rule>> = {
  ...preparedRules,
  name: isText,
  instructions: [
    (value) => [value].flat().every((it) => typeof it === 'string' || typeof it === 'function'),
    'a string, a function that returns one, or a list of both',
  ],
  use: listOf('layers'),
  context: isContext,
};

/** Options are foreign objects: their getters and the `turn` of a layer may throw anything. */
export const asConfigError = <T>(owner: string, make: () => T): T => {
  try {
    return make();
  } catch (cause) {
    throw toMillraceError(cause, 'config', `${owner}: its options cannot be read`);
  }
};

/** Returns the layers of an agent, or throws a `config` error that names the fix. */
export const layersIn = (
  owner: string,
  options: Pick<AnyAgentOptions<InputSchema | undefined>, 'use'>,
): readonly Layer[] => {
  const use = readUse(owner, options.use);
  if (!areFunctions(asConfigError(owner, () => turnThrough(use, nativePhases))))
    throw noPhases(owner);
  return use;
};

const areFunctions = (list: unknown): boolean =>
  Array.isArray(list) && list.length > 0 && list.every((each) => typeof each === 'function');

const noPhases = (owner: string): MillraceError =>
  misuse(
    `${owner}: the 'turn' of a layer must return a list of phases, as that of insertBefore(reasoning, myPhase) does.`,
  );
