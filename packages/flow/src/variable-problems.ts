import { valueOfType } from './components/set.js';
import { didYouMean } from './did-you-mean.js';
import type { Assignment, FlowComponents, FlowVariable, VariableType } from './document.js';
import { type Finding, problemAt } from './problem.js';
import { allComponents } from './template-problems.js';

type Variables = Readonly<Record<string, FlowVariable>>;
type Path = readonly (string | number)[];

/** Defaults that are not of the type of their variable, and assignments that cannot succeed. */
export const variableProblems = (
  components: FlowComponents,
  variables: Variables,
): readonly Finding[] => [
  ...Object.entries(variables).flatMap(([name, { type, default: value }]) =>
    value === undefined || isOfType(type, value)
      ? []
      : [problemAt(['variables', name, 'default'], `is not of the type '${type}'`)],
  ),
  ...allComponents(components).flatMap(({ component, path }) =>
    component.component_name === 'set'
      ? component.params.assign.flatMap((assignment, index) =>
          assignmentProblems(assignment, variables, [...path, 'params', 'assign', index]),
        )
      : [],
  ),
];

/** A default is not converted, unlike the text of a template. */
const isOfType = (type: VariableType, value: unknown): boolean =>
  type === 'string'
    ? typeof value === 'string'
    : typeof value !== 'string' && valueOfType(type, value) !== undefined;

const assignmentProblems = (
  { variable, operator = 'set', value }: Assignment,
  variables: Variables,
  path: Path,
): readonly Finding[] => {
  const type = Object.hasOwn(variables, variable) ? variables[variable]?.type : undefined;
  if (type === undefined) {
    return [
      problemAt([...path, 'variable'], `names '${variable}', which is not a variable`, () =>
        didYouMean(variable, Object.keys(variables), 'variables'),
      ),
    ];
  }
  const needed = neededType(operator);
  if (needed !== undefined && needed !== type) {
    const suggestion = `'${operator}' needs a variable of the type '${needed}'.`;
    return [
      problemAt(
        [...path, 'operator'],
        `is '${operator}', but '${variable}' is of the type '${type}'`,
        suggestion,
      ),
    ];
  }
  const isAlone = ['clear', 'remove first', 'remove last'].includes(operator);
  if (isAlone === (value === undefined)) return constantProblems(type, operator, value, path);
  return [
    isAlone
      ? problemAt([...path, 'value'], `is not used by '${operator}'`, 'Remove it.')
      : problemAt([...path, 'value'], 'is missing', `'${operator}' needs a value.`),
  ];
};

const neededType = (operator: NonNullable<Assignment['operator']>): VariableType | undefined => {
  switch (operator) {
    case 'set':
    case 'clear':
      return undefined;
    case 'append':
    case 'extend':
    case 'remove first':
    case 'remove last':
      return 'array';
    case 'add':
    case 'subtract':
    case 'multiply':
    case 'divide':
      return 'number';
  }
};

/** A value without templates is known. */
const constantProblems = (
  type: VariableType,
  operator: NonNullable<Assignment['operator']>,
  value: unknown,
  path: Path,
): readonly Finding[] => {
  const isChecked =
    operator === 'set' || neededType(operator) === 'number' || operator === 'extend';
  const isConstant = value !== undefined && !JSON.stringify(value).includes('{{');
  if (!isChecked || !isConstant || valueOfType(type, value) !== undefined) return [];
  return [problemAt([...path, 'value'], `is not of the type '${type}'`)];
};
