import { checkOptions, isFlag } from '../options.js';
import { copied, frozen } from '../frozen.js';
import { isRecord } from '../json.js';
import type { HiddenInput } from '../schema.js';
import { type ContextValues, isContextKey, noValues, valueOf } from './context-key.js';
import { checkParameters, optional, withoutParameters } from './parameters.js';
import type { Tool } from './types.js';

/** How parameters are set. */
export interface PresetOptions {
  /** Whether the model sees the parameters and may say otherwise. Default: false, it neither sees nor overrides them. */
  readonly overridable?: boolean;
}

/**
 * Sets parameters of a tool: to a value, or to what a call is given under a context key. The model does not see them, and what it says
 * of them counts for nothing; what is set is validated with the rest. Throws a `config` error for a parameter that the tool
 * does not have.
 */
export const preset = (
  tool: Tool,
  parameters: Readonly<Record<string, unknown>>,
  options: PresetOptions = {},
): Tool => {
  const owner = `preset() of the tool '${tool.name}'`;
  checkOptions(owner, options, { overridable: isFlag });
  const names = Object.keys(parameters);
  checkParameters(owner, tool.inputSchema, names);
  const { overridable = false } = options;
  const own = Object.entries(parameters).map(
    ([name, value]) => [name, isContextKey(value) ? value : frozen(copied(value))] as const,
  );
  return {
    ...tool,
    hidden: [...(tool.hidden ?? []), ...(overridable ? [] : names)],
    inputSchema: (overridable ? optional : withoutParameters)(tool.inputSchema, names),
    validation$: (input, values, hidden) => {
      const said = overridable && isRecord(input) ? input : {};
      const set = own.filter(([name]) => !Object.hasOwn(said, name));
      return tool.validation$(input, values, { ...resolved(set, values), ...hidden });
    },
  };
};

const resolved = (
  own: readonly (readonly [string, unknown])[],
  values: ContextValues = noValues,
): HiddenInput =>
  Object.fromEntries(
    own.map(([name, value]) => [name, isContextKey(value) ? valueOf(value, values) : value]),
  );
