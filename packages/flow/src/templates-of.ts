import { isRecord } from 'millrace/values';
import { onErrorOf } from './branches.js';
import type { FlowComponent, SwitchCondition } from './document.js';

/** A template of a component, and its path in the params. */
export interface TemplateAt {
  readonly path: readonly (string | number)[];
  readonly text: string;
  /** Whether it is evaluated inside a loop, and may refer to the components there. */
  readonly isInside?: true;
}

/** The templates of a component, without those of components inside it. */
export const templatesOf = (component: FlowComponent): readonly TemplateAt[] => {
  const fallback = at(onErrorOf(component)?.value, 'on_error', 'value');
  switch (component.component_name) {
    case 'agent': {
      const { sys_prompt, prompts = [] } = component.params;
      const contents = prompts.flatMap(({ content }, index) =>
        at(content, 'prompts', index, 'content'),
      );
      return [...at(sys_prompt, 'sys_prompt'), ...contents, ...fallback];
    }
    case 'retrieval':
    case 'categorize':
      return [...at(component.params.query, 'query'), ...fallback];
    case 'switch':
      return component.params.cases.flatMap(({ conditions }, index) =>
        ofConditions(conditions, 'cases', index),
      );
    case 'loop':
      return [
        ...ofConditions(component.params.until?.conditions, 'until').map((it): TemplateAt => ({
          ...it,
          isInside: true,
        })),
        ...fallback,
      ];
    case 'human':
      return [...at(component.params.message, 'message'), ...fallback];
    case 'http': {
      const { url, headers, body } = component.params;
      return [
        ...at(url, 'url'),
        ...textsIn(headers, ['headers']),
        ...textsIn(body, ['body']),
        ...fallback,
      ];
    }
    case 'set':
      return [
        ...component.params.assign.flatMap(({ value }, index) =>
          textsIn(value, ['assign', index, 'value']),
        ),
        ...fallback,
      ];
    case 'iterate':
      return [...at(component.params.items, 'items'), ...fallback];
    case 'message':
      return at(component.params.content, 'content');
    case 'code':
    case 'tool':
      return [...textsIn(component.params.input, ['input']), ...fallback];
    default:
      return [];
  }
};

const ofConditions = (
  conditions: readonly SwitchCondition[] | undefined,
  ...path: readonly (string | number)[]
): readonly TemplateAt[] =>
  (conditions ?? []).flatMap(({ value, operand }, nth) => [
    ...at(value, ...path, 'conditions', nth, 'value'),
    ...at(operand, ...path, 'conditions', nth, 'operand'),
  ]);

const at = (
  text: string | undefined,
  ...path: readonly (string | number)[]
): readonly TemplateAt[] => (text === undefined ? [] : [{ path, text }]);

const textsIn = (value: unknown, path: readonly (string | number)[]): readonly TemplateAt[] => {
  if (typeof value === 'string') return [{ path, text: value }];
  if (Array.isArray(value)) {
    return value.flatMap((item: unknown, index) => textsIn(item, [...path, index]));
  }
  if (!isRecord(value)) return [];
  return Object.entries(value).flatMap(([key, item]) => textsIn(item, [...path, key]));
};
