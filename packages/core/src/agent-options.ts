import type { CallInfo } from './call-info.js';
import { isContext, preparedRules } from './call-options.js';
import { type MillraceError, misuse } from './errors.js';
import { type Layer, readUse, turnThrough, type Use } from './layer.js';
import type { Model } from './model.js';
import { isText, listOf, type Rule } from './options.js';
import { nativePhases } from './phase-list.js';
import type { CallDefaults } from './preparation.js';
import type { InputSchema } from './schema.js';
import type { ContextEntry } from './tools/context-key.js';
import type { ToolEntry } from './tools/types.js';

/** What an agent is made of. */
export interface AgentOptions<
  Output extends InputSchema | undefined = InputSchema | undefined,
> extends CallDefaults {
  /** What events and other agents call it. Default: `agent`. */
  readonly name?: string;
  readonly model: Model;
  /** The system prompt, or a function that writes it for a call. */
  readonly instructions?: string | ((call: CallInfo) => string);
  /** Tools, and groups of tools that `toolGroup` has made. Each session begins with them. */
  readonly tools?: readonly ToolEntry[];
  /** Layers around every call, its steps, its models and its turns, such as `on('preActing', operator)`, `retrieve(retriever)` and `insertBefore(reasoning, myPhase)`. Default: none. */
  readonly use?: Use<Output>;
  /** What tools find under context keys. What a session and a call give goes before it. */
  readonly context?: readonly ContextEntry[];
}

/** What an agent is made of whose loop may be another than the model's: it needs no model then. */
export type AnyAgentOptions<Output extends InputSchema | undefined> = Omit<
  AgentOptions<Output>,
  'model'
> & { readonly model?: Model };

/** Reads the layers of an agent, or throws a `config` error that names the fix. */
export const layersIn = (
  owner: string,
  options: Pick<AnyAgentOptions<InputSchema | undefined>, 'use'>,
): readonly Layer[] => {
  const use = readUse(owner, options.use);
  if (!areFunctions(turnThrough(use, nativePhases))) throw noPhases(owner);
  return use;
};

const areFunctions = (list: unknown): boolean =>
  Array.isArray(list) && list.length > 0 && list.every((each) => typeof each === 'function');

export const agentRules: Readonly<Record<keyof AgentOptions, Rule>> = {
  ...preparedRules,
  name: isText,
  instructions: [
    (value) => typeof value === 'string' || typeof value === 'function',
    'a text, or a function that writes one',
  ],
  use: listOf('layers'),
  context: isContext,
};

const noPhases = (owner: string): MillraceError =>
  misuse(
    `${owner}: the 'turn' of a layer must return a list of phases, such as that of insertBefore(reasoning, myPhase) does.`,
  );
