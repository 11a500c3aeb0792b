import { isRecord } from '@millrace/core/adapter';
import type { FlowComponent } from './document.js';
import { onErrorOf } from './kinds.js';

/** A text of a component that is a template, and where it stands from the params on. */
export interface PlacedText {
  readonly path: readonly (string | number)[];
  readonly text: string;
}

/** The templates of a component, those of components within it not among them. */
export const templatesOf = (component: FlowComponent): readonly PlacedText[] => {
  const fallback = at(onErrorOf(component)?.value, 'on_error', 'value');
  switch (component.component_name) {
    case 'agent': {
      const { sys_prompt, prompts = [] } = component.params;
      const asked = prompts.flatMap(({ content }, index) =>
        at(content, 'prompts', index, 'content'),
      );
      return [...at(sys_prompt, 'sys_prompt'), ...asked, ...fallback];
    }
    case 'retrieval':
    case 'categorize':
      return [...at(component.params.query, 'query'), ...fallback];
    case 'switch':
      return component.params.cases.flatMap(({ conditions }, index) =>
        conditions.flatMap(({ value, operand }, nth) => [
          ...at(value, 'cases', index, 'conditions', nth, 'value'),
          ...at(operand, 'cases', index, 'conditions', nth, 'operand'),
        ]),
      );
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

const at = (
  text: string | undefined,
  ...path: readonly (string | number)[]
): readonly PlacedText[] => (text === undefined ? [] : [{ path, text }]);

const textsIn = (value: unknown, path: readonly (string | number)[]): readonly PlacedText[] => {
  if (typeof value === 'string') return [{ path, text: value }];
  if (Array.isArray(value)) {
    return value.flatMap((item: unknown, index) => textsIn(item, [...path, index]));
  }
  if (!isRecord(value)) return [];
  return Object.entries(value).flatMap(([key, item]) => textsIn(item, [...path, key]));
};
