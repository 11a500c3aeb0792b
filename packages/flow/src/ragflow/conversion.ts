import { isRecord, parsedJson } from 'millrace/values';
import type {
  FlowComponent,
  FlowComponents,
  FlowVariable,
  OnError,
  SwitchCondition,
  SwitchOperator,
  VariableType,
} from '../document.js';
import { type Canvas, type CanvasComponent, type Params, textIn } from './canvas.js';
import type { References } from './references.js';

/** The counterpart of a component of a canvas: one component, sometimes with another before it, and variables. */
export interface Converted {
  readonly component: FlowComponent;
  /** Runs before it, with its links. */
  readonly before?: FlowComponent;
  readonly variables?: Readonly<Record<string, FlowVariable>>;
}

export interface Conversion {
  readonly canvas: Canvas;
  readonly it: CanvasComponent;
  readonly refs: References;
  readonly note: (param: string, reason: string) => void;
  /** Converts IDs of the canvas. */
  readonly idsOf: (originals: unknown, param: string) => readonly string[];
  /** Converts the components inside it. */
  readonly inside: () => FlowComponents;
}

export const isSet = (value: unknown): boolean =>
  value !== undefined &&
  value !== null &&
  value !== '' &&
  value !== false &&
  value !== 0 &&
  !(Array.isArray(value) && value.length === 0) &&
  !(isRecord(value) && Object.keys(value).length === 0);

export const numberOf = (value: unknown): number | undefined => {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined;
};

export const within = (value: number, least: number, most: number): number =>
  Math.min(Math.max(Math.round(value), least), most);

/** Reports params that are set, and have no counterpart. */
export const noteParams = (
  { it, note }: Conversion,
  reason: string,
  names: readonly string[],
  defaults: Params = {},
): void =>
  names
    .filter((name) => isSet(it.params[name]) && it.params[name] !== defaults[name])
    .forEach((name) => {
      note(name, reason);
    });

/** How a canvas handles the error of a component, and repeats it. */
export const handling = ({
  it: { params },
  refs,
  idsOf,
}: Conversion): {
  readonly on_error?: OnError;
  readonly retry?: { readonly times: number; readonly delay_ms: number };
} => {
  const { exception_method: method, exception_default_value: value } = params;
  const to = method === 'goto' ? idsOf(params['exception_goto'], 'exception_goto') : [];
  const fallback = method === 'comment' ? refs.text(textIn(value), 'exception_default_value') : '';
  const times = numberOf(params['max_retries']) ?? 0;
  const delay = numberOf(params['delay_after_error']) ?? 1;
  return {
    ...(times >= 1 && {
      retry: { times: within(times, 1, 10), delay_ms: within(delay * 1_000, 0, 600_000) },
    }),
    ...((to.length > 0 || method === 'comment') && {
      on_error: { ...(method === 'comment' && { value: fallback }), ...(to.length > 0 && { to }) },
    }),
  };
};

/** An empty model is the default model of the user there. */
export const modelOf = ({ params }: CanvasComponent): string =>
  textIn(params['llm_id']) || 'default';

export const links = ({ it, idsOf }: Conversion): { readonly downstream?: readonly string[] } => {
  const downstream = idsOf(it.downstream, 'downstream');
  return downstream.length === 0 ? {} : { downstream };
};

export const toolName = (name: string): string =>
  name
    .trim()
    .replace(/[^A-Za-z0-9_-]+/gu, '_')
    .slice(0, 64) || 'tool';

/** A param that is a reference without braces, or text with references. */
export const templateFrom = (written: string, param: string, refs: References): string =>
  /^(?:sys\.|env\.|[A-Za-z0-9_:-]+@)[A-Za-z0-9_.-]+$/u.test(written.trim())
    ? refs.ref(written, param)
    : refs.text(written, param);

const operators: Readonly<Record<string, SwitchOperator>> = {
  contains: 'contains',
  'not contains': 'not contains',
  'start with': 'starts with',
  'end with': 'ends with',
  empty: 'is empty',
  'not empty': 'is not empty',
  '=': 'equals',
  is: 'equals',
  '≠': 'not equals',
  'is not': 'not equals',
  '>': '>',
  '<': '<',
  '≥': '≥',
  '≤': '≤',
};

export const conditionFrom = (
  { refs, note }: Conversion,
  left: string,
  operator: unknown,
  right: string,
  param: string,
): SwitchCondition => {
  const known = Object.hasOwn(operators, textIn(operator))
    ? operators[textIn(operator)]
    : undefined;
  if (known === undefined)
    note(param, `The operator '${textIn(operator)}' is not known: 'equals' is used.`);
  const isAlone = known === 'is empty' || known === 'is not empty';
  return {
    value: refs.ref(left, param),
    operator: known ?? 'equals',
    ...(!isAlone && { operand: right }),
  };
};

export const asText = (value: unknown): string =>
  typeof value === 'string'
    ? value
    : value === undefined || value === null
      ? ''
      : JSON.stringify(value);

export const onErrorOf = (conversion: Conversion): { readonly on_error?: OnError } => {
  const { on_error } = handling(conversion);
  return on_error === undefined ? {} : { on_error };
};

export const typeFrom = (type: string): VariableType => {
  const word = type.toLowerCase();
  if (word.startsWith('array') || word.startsWith('list')) return 'array';
  if (word.startsWith('object') || word === 'dict') return 'object';
  if (word === 'number' || word === 'boolean') return word;
  return 'string';
};

/** A value if it is of the type, or JSON text for one. */
export const ofType = (type: VariableType, given: unknown): unknown => {
  if (type === 'string') return typeof given === 'string' ? given : undefined;
  const value = typeof given === 'string' ? parsedJson(given) : given;
  const kind = Array.isArray(value) ? 'array' : typeof value;
  return value !== null && kind === type ? value : undefined;
};
