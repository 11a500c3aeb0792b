import { at, textAt } from '@millrace/wire';

/** Follows which items of a response are open. */
export interface OpenItems {
  readonly note: (event: unknown) => void;
  /** Returns the type of an open item that shows no content while the model works on it; `undefined` without one. */
  readonly working: () => string | undefined;
}

export const createOpenItems = (): OpenItems => {
  const open = new Map<unknown, string>();
  return {
    note: (event) => {
      const type = at(event, 'type');
      const index = at(event, 'output_index');
      if (type === 'response.output_item.added') open.set(index, textAt(event, 'item', 'type'));
      if (type === 'response.output_item.done') open.delete(index);
    },
    working: () => [...open.values()].find((type) => type !== 'message'),
  };
};
