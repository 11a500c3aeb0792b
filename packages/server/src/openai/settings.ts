import type { CallOptions, Reply, Usage } from 'millrace';
import { isRecord } from 'millrace/values';
import { fieldOf, type PartOptions } from '../inbound.js';
import type { CallEnd } from '../parts/part.js';
import { shownCost } from '../parts/shown-cost.js';
import { type ClientTool, readClientTools } from '../client-tools.js';
import type { AskedFor } from './asked-for.js';
import type { OpenAiApprovals } from './decisions.js';
import { assertShallow, refuse } from './refusals.js';

/** The settings that requests of both interfaces have. */
export interface Settings extends Pick<AskedFor, 'tools' | 'format' | 'maxTokens'> {
  readonly request: NonNullable<CallOptions['request']>;
  readonly isStream: boolean;
}

/** The names of the fields that differ. */
interface Fields {
  readonly maxTokens: readonly string[];
  /** The function of a tool: chat completions wrap it. */
  readonly functionOf: (tool: unknown) => unknown;
  /** The format of the answer: its `type`, its schema, and the parameter for errors. */
  readonly form: { readonly param: string; readonly type: unknown; readonly schema: unknown };
}

/** The agent, as its model. */
export interface Served {
  readonly model: string;
  readonly toolNames: ReadonlySet<string>;
  readonly approvals: OpenAiApprovals | undefined;
  /** Parts that nothing converts are refused, as the API does. */
  readonly parts: Pick<PartOptions, 'convertPart'>;
}

export const settingsOf = (
  body: unknown,
  { model, toolNames }: Served,
  fields: Fields,
): Settings => {
  if (!isRecord(body)) throw refuse('The body must be a JSON object.');
  assertShallow(body);
  const asked = fieldOf(body, 'model') ?? model;
  if (asked !== model) {
    const message = `The model does not exist. This server has '${model}'.`;
    throw refuse(message, 'model', 'model_not_found', 404);
  }
  const { choice, tools } = toolsOf(body, fields, toolNames);
  const format = formatOf(fields.form);
  const temperature = numberIn(body, 'temperature', 0, 2);
  const stop = stopOf(fieldOf(body, 'stop') ?? undefined);
  const maxTokens = fields.maxTokens
    .map((name) => numberIn(body, name, 1, Number.MAX_SAFE_INTEGER))
    .find((it) => it !== undefined);
  return {
    isStream: flagIn(body, 'stream'),
    ...(tools.length > 0 && { tools }),
    ...(format && { format }),
    ...(maxTokens !== undefined && { maxTokens: Math.floor(maxTokens) }),
    request: {
      ...(temperature !== undefined && { temperature }),
      ...(stop && { stopSequences: stop }),
      ...(choice && { toolChoice: choice }),
    },
  };
};

const numberIn = (body: unknown, name: string, least: number, most: number): number | undefined => {
  const value = fieldOf(body, name) ?? undefined;
  if (value === undefined) return undefined;
  if (typeof value === 'number' && value >= least && value <= most) return value;
  throw refuse(`'${name}' must be a number from ${least} to ${most}.`, name);
};

export const flagIn = (body: unknown, name: string, otherwise = false): boolean => {
  const value = fieldOf(body, name) ?? otherwise;
  if (typeof value === 'boolean') return value;
  throw refuse(`'${name}' must be true or false.`, name);
};

const stopOf = (stop: unknown): readonly string[] | undefined => {
  if (stop === undefined) return undefined;
  const list: readonly unknown[] = Array.isArray(stop) ? stop : [stop];
  const texts = list.filter((it) => typeof it === 'string').filter((it) => it !== '');
  if (texts.length === list.length && list.length <= 4) return texts;
  throw refuse("'stop' must be a string, or up to 4 of them.", 'stop');
};

interface Tools {
  readonly tools: readonly ClientTool[];
  readonly choice?: NonNullable<Settings['request']['toolChoice']>;
}

const toolsOf = (body: unknown, { functionOf }: Fields, taken: ReadonlySet<string>): Tools => {
  const given = fieldOf(body, 'tools') ?? [];
  const isOther = (it: unknown): boolean => fieldOf(it, 'type') !== 'function';
  if (Array.isArray(given) && given.some(isOther)) {
    throw refuse('Only tools of the type function are supported.', 'tools');
  }
  const tools = readClientTools(Array.isArray(given) ? given.map(functionOf) : given, taken);
  if (typeof tools === 'string') throw refuse(tools, 'tools');
  const names = new Set(tools.map(({ name }) => name));
  const choice = fieldOf(body, 'tool_choice') ?? 'auto';
  switch (choice) {
    case 'auto':
      return { tools };
    case 'none':
      // A client cannot forbid the tools of the agent.
      return { tools: [] };
    case 'required':
      return { tools, choice: 'required' };
    default: {
      const name = fieldOf(functionOf(choice), 'name');
      if (typeof name === 'string' && names.has(name)) return { tools, choice: { name } };
      throw refuse("'tool_choice' must be auto, none, required, or one of 'tools'.", 'tool_choice');
    }
  }
};

const formatOf = ({ type = 'text', schema, param }: Fields['form']): AskedFor['format'] => {
  switch (type) {
    case 'text':
      return undefined;
    case 'json_object':
      return { type: 'object' };
    case 'json_schema':
      if (isRecord(schema) && schema['type'] === 'object') return schema;
      throw refuse('The schema must have the type object at its root.', param);
    default:
      throw refuse('The type must be text, json_object or json_schema.', param);
  }
};

/** Why an answer is incomplete; `undefined` if it is complete. */
export const shortfallOf = ({ reason, finish }: Reply): 'length' | 'content_filter' | undefined => {
  if (reason === 'refused' || finish === 'filtered' || finish === 'refusal')
    return 'content_filter';
  const isShort = finish === 'length' || limits.some((it) => it === reason);
  return isShort ? 'length' : undefined;
};

const limits = ['truncated', 'maxIterations', 'budget'];

/** Token counts as OpenAI reports them: the input includes cached tokens. */
export const tokensOf = ({
  inputTokens,
  outputTokens,
  cacheReadTokens,
  cacheWriteTokens,
}: Usage) => {
  const input = inputTokens + cacheReadTokens + cacheWriteTokens;
  return {
    input,
    output: outputTokens,
    total: input + outputTokens,
    cached: cacheReadTokens,
    written: cacheWriteTokens,
  };
};

/**
 * The cost of a call for the usage, where OpenRouter reports it: a number of US dollars. Left out in another currency, or if a part
 * of it is unknown. The formats of OpenAI have no field for it.
 */
export const costField = (end: CallEnd): { readonly cost?: number } => {
  const { cost } = end.status === 'replied' ? shownCost(end.reply) : {};
  return cost?.total === undefined || cost.currency !== 'USD' ? {} : { cost: cost.total };
};

export const eventStreamHeaders: Readonly<Record<string, string>> = {
  'content-type': 'text/event-stream; charset=utf-8',
  // Compression in a middleware or proxy would delay the stream.
  'cache-control': 'no-cache, no-transform',
  // Proxies that buffer responses would delay the stream.
  'x-accel-buffering': 'no',
};

export const secondsNow = (): number => Math.floor(Date.now() / 1_000);
