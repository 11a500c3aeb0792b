import { MillraceError } from 'millrace';
import { isRecord, parsedJson } from 'millrace/values';
import { defer, of } from 'rxjs';
import type { Assignment, FlowVariable, SetParams, VariableType } from '../document.js';
import { asText, checkValue, fill } from '../render.js';
import { noOutput, type Scope } from '../scope.js';
import type { Work } from '../work.js';

type Declared = Readonly<Record<string, FlowVariable>>;

/** Changes variables, in order: each assignment sees the earlier ones. */
export const setWork =
  ({ assign }: SetParams, declared: Declared): Work =>
  (scope) =>
    defer(() => {
      const set = assign.reduce<ReadonlyMap<string, unknown>>((changed, assignment) => {
        const place = Number.MAX_SAFE_INTEGER;
        const now = [...changed].map(([name, value]) => [name, { value, place }] as const);
        const view = { ...scope, variables: new Map([...scope.variables, ...now]) };
        const value = assigned(assignment, view, declared);
        checkValue(value);
        return new Map([...changed, [assignment.variable, value]]);
      }, new Map());
      return of({ status: 'done', output: noOutput, variables: set } as const);
    });

/** The values at the start of a call. */
export const initialVariables = (declared: Declared): Scope['variables'] =>
  new Map(
    Object.entries(declared).map(([name, { type, default: value = emptyOf(type) }]) => [
      name,
      { value, place: -1 },
    ]),
  );

const emptyOf = (type: VariableType): unknown => {
  switch (type) {
    case 'string':
      return '';
    case 'number':
      return 0;
    case 'boolean':
      return false;
    case 'object':
      return {};
    case 'array':
      return [];
  }
};

const assigned = (
  { variable, operator = 'set', value }: Assignment,
  scope: Scope,
  declared: Declared,
): unknown => {
  const type = declared[variable]?.type ?? 'string';
  const old = scope.variables.get(variable)?.value;
  const given = fill(value, scope);
  const list: readonly unknown[] = Array.isArray(old) ? old : [];
  switch (operator) {
    case 'set':
      return converted(variable, type, given);
    case 'clear':
      return emptyOf(type);
    case 'append':
      return [...list, given];
    case 'extend':
      return [...list, ...listIn(variable, given)];
    case 'remove first':
      return list.slice(1);
    case 'remove last':
      return list.slice(0, -1);
    case 'add':
      return Number(old) + numberIn(variable, given);
    case 'subtract':
      return Number(old) - numberIn(variable, given);
    case 'multiply':
      return Number(old) * numberIn(variable, given);
    case 'divide': {
      const divisor = numberIn(variable, given);
      if (divisor === 0) throw invalid(variable, 'cannot be divided by 0');
      return Number(old) / divisor;
    }
  }
};

/** The value of a type that a value stands for; texts of templates may be JSON. */
const converted = (variable: string, type: VariableType, given: unknown): unknown => {
  const found = valueOfType(type, given);
  if (found !== undefined) return found;
  const what = asText(given).slice(0, 100) || 'nothing';
  throw invalid(variable, `must be of the type '${type}', not '${what}'`);
};

/** `undefined` if the value is not of the type, and no text for one. */
export const valueOfType = (type: VariableType, given: unknown): unknown => {
  if (type === 'string') return typeof given === 'string' ? given : JSON.stringify(given);
  const value = typeof given === 'string' ? parsedJson(given.trim()) : given;
  switch (type) {
    case 'number':
      return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
    case 'boolean':
      return typeof value === 'boolean' ? value : undefined;
    case 'array':
      return Array.isArray(value) ? value : undefined;
    case 'object':
      return isRecord(value) && !Array.isArray(value) ? value : undefined;
  }
};

const numberIn = (variable: string, given: unknown): number =>
  Number(converted(variable, 'number', given));

const listIn = (variable: string, given: unknown): readonly unknown[] => {
  const list = converted(variable, 'array', given);
  return Array.isArray(list) ? list : [];
};

const invalid = (variable: string, why: string): MillraceError =>
  new MillraceError('invalidRequest', `The variable '${variable}' ${why}.`);
