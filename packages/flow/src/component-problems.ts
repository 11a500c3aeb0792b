import { createAgent, isMillraceError, type Tool } from 'millrace';
import { isRecord } from 'millrace/values';
import { jsonSchema } from 'millrace/schema';
import { idempotentMethods } from './components/http.js';
import type {
  AgentParams,
  FlowComponents,
  HttpParams,
  HumanParams,
  SwitchCondition,
} from './document.js';
import { type Finding, problemAt } from './problem.js';
import { templateOf } from './render.js';
import type { FlowResources } from './resources.js';
import { allComponents } from './template-problems.js';
import { noModel } from './work.js';

type Path = readonly (string | number)[];

/** Problems in the params of components that the document schema cannot express. */
export const componentProblems = (
  components: FlowComponents,
  resources: FlowResources | undefined,
): readonly Finding[] =>
  allComponents(components).flatMap(({ component, path }) => {
    const at = [...path, 'params'];
    switch (component.component_name) {
      case 'agent':
        return [
          ...outputProblems(component.params, at),
          ...repeatedTools(component.params, at, resources),
        ];
      case 'switch':
        return component.params.cases.flatMap(({ conditions }, index) =>
          operandProblems(conditions, [...at, 'cases', index]),
        );
      case 'loop':
        return operandProblems(component.params.until?.conditions ?? [], [...at, 'until']);
      case 'human':
        return humanProblems(component.params, at);
      case 'http':
        return httpProblems(component.params, at);
      default:
        return [];
    }
  });

const operandProblems = (conditions: readonly SwitchCondition[], path: Path): readonly Finding[] =>
  conditions.flatMap(({ operator, operand }, nth) => {
    const at = [...path, 'conditions', nth, 'operand'];
    const isAlone = operator === 'is empty' || operator === 'is not empty';
    if (isAlone === (operand === undefined)) return [];
    return [
      isAlone
        ? problemAt(at, `is not used by '${operator}'`, 'Remove it.')
        : problemAt(at, 'is missing', `'${operator}' compares the value with it.`),
    ];
  });

const humanProblems = ({ choices, fields = {} }: HumanParams, path: Path): readonly Finding[] => {
  const names = Object.keys(fields);
  return [
    ...(choices !== undefined && names.length > 0
      ? [
          problemAt(
            [...path, 'choices'],
            'cannot be combined with fields',
            "Add a field of the type 'choice'.",
          ),
        ]
      : []),
    ...Object.entries(fields).flatMap(([name, field]) => {
      const at = [...path, 'fields', name, 'choices'];
      if ((field.type === 'choice') === (field.choices !== undefined)) return [];
      return [
        field.type === 'choice'
          ? problemAt(at, 'is missing', 'List the possible values.')
          : problemAt(at, `is not used by a field of the type '${field.type}'`, 'Remove it.'),
      ];
    }),
  ];
};

const httpProblems = (params: HttpParams, path: Path): readonly Finding[] => {
  const { url, method = 'GET', body, headers = {}, idempotency_key, retry } = params;
  const [first] = templateOf(url);
  const isPlain = typeof first === 'string' && !/^https?:\/\/[^/?#]/iu.test(url.trim());
  const names = Object.keys(headers).map((name) => name.toLowerCase());
  const repeated = names.filter((name, index) => names.indexOf(name) !== index);
  const isSafe = idempotentMethods.has(method) || idempotency_key === true;
  const sole = typeof first === 'object' && first.of === 'secret' ? first.name : undefined;
  return [
    ...(url.trim() === '' || isPlain
      ? [problemAt([...path, 'url'], 'is not a URL', 'It must start with http:// or https://.')]
      : []),
    ...(sole !== undefined
      ? [
          problemAt(
            [...path, 'url'],
            `starts with 'secret.${sole}'`,
            'The host cannot be a secret.',
          ),
        ]
      : []),
    ...(body !== undefined && (method === 'GET' || method === 'HEAD')
      ? [problemAt([...path, 'body'], `cannot be sent with ${method}`, "Set 'method' to POST.")]
      : []),
    ...repeated.map((name) => problemAt([...path, 'headers', name], 'is set twice')),
    ...(retry !== undefined && !isSafe
      ? [
          problemAt(
            [...path, 'retry'],
            `may repeat the effect of ${method}`,
            "Set 'idempotency_key' if the server supports it, or remove 'retry'.",
          ),
        ]
      : []),
  ];
};

const outputProblems = ({ output: schema }: AgentParams, path: Path): readonly Finding[] => {
  if (schema === undefined) return [];
  const at = [...path, 'output'];
  if (hasPatterns(schema)) {
    const suggestion = 'Describe the format of a string in its description.';
    return [problemAt(at, 'uses patterns, which can block the process forever', suggestion)];
  }
  return errorsOf(() => jsonSchema(schema)).map((why) => problemAt(at, why));
};

const repeatedTools = (
  { tools = [], mcp = [] }: AgentParams,
  path: Path,
  resources: FlowResources | undefined,
): readonly Finding[] => {
  const own = resources === undefined ? [] : toolsOf({ tools, mcp }, resources);
  return errorsOf(() => createAgent({ model: noModel, tools: own })).map((why) =>
    problemAt([...path, 'tools'], why),
  );
};

/** The tools of an agent component. Missing ones are left out. */
export const toolsOf = (
  { tools = [], mcp = [] }: Pick<AgentParams, 'tools' | 'mcp'>,
  resources: FlowResources,
): readonly Tool[] => [
  ...tools.flatMap((name) => (resources.tools ?? []).filter((tool) => tool.name === name)),
  ...mcp.flatMap((id) => ownOf(resources.mcp, id) ?? []),
];

export const ownOf = <Value>(
  record: Readonly<Record<string, Value>> | undefined,
  key: string,
): Value | undefined =>
  record !== undefined && Object.hasOwn(record, key) ? record[key] : undefined;

const errorsOf = (make: () => unknown): readonly string[] => {
  try {
    make();
    return [];
  } catch (cause) {
    if (!isMillraceError(cause)) throw cause;
    const why = cause.message.replace(/^createAgent\(\): /u, '').replace(/\.$/u, '');
    return [`cannot be used: ${why.replace('jsonSchema(): the schema', "'output'")}`];
  }
};

/** Keywords whose value is a map of schemas. */
const schemaMaps = new Set(['properties', '$defs', 'definitions', 'dependentSchemas']);
/** Keywords whose value is data. */
const data = new Set(['enum', 'const', 'default', 'examples', 'required']);

const hasPatterns = (schema: unknown): boolean => {
  if (Array.isArray(schema)) return schema.some(hasPatterns);
  if (!isRecord(schema)) return false;
  return Object.entries(schema).some(([key, value]) => {
    if (key === 'pattern' || key === 'patternProperties') return true;
    if (data.has(key)) return false;
    return schemaMaps.has(key) && isRecord(value)
      ? Object.values(value).some(hasPatterns)
      : hasPatterns(value);
  });
};
