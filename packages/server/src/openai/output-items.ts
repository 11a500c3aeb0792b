/** An event before it has its number. */
export type Unnumbered = Readonly<Record<string, unknown>> & { readonly type: string };

/** An item of the output. */
export interface OutputItem {
  readonly index: number;
  readonly id: string;
  /** The message of the agent that it belongs to. */
  readonly messageId: string;
  /** Its content is left out because the message is discarded later. */
  readonly isOmitted: boolean;
  /** The item as the response shows it. */
  fields: Readonly<Record<string, unknown>>;
  /** The response leaves it out of its output. */
  isVoid: boolean;
}

/** The output of a response. */
export interface OutputItems {
  /** Adds an item at the end. Returns it, and the event that announces it. */
  add(prefix: string, messageId: string, fields: object): readonly [OutputItem, Unnumbered];
  /** Empties the items of a message that was discarded. They keep their places: clients find items by their index. */
  discard(messageId: string): readonly Unnumbered[];
  /** The items as the response shows them. */
  shown(): readonly object[];
}

export const createOutputItems = (
  /** Returns the prefix of the ids, after the kind of the item. */
  place: () => string,
  discarded: readonly string[],
): OutputItems => {
  const items: OutputItem[] = [];
  return {
    add: (prefix, messageId, fields) => {
      const index = items.length;
      const id = `${prefix}_${place()}_${index}`;
      const isOmitted = discarded.includes(messageId);
      const item = { index, id, messageId, isOmitted, fields: { id, ...fields }, isVoid: false };
      items.push(item);
      const type = 'response.output_item.added';
      return [item, { type, output_index: index, item: item.fields }];
    },
    discard: (messageId) =>
      items
        .filter((item) => item.messageId === messageId && !item.isVoid)
        .map((item) => {
          const { type } = item.fields;
          const emptied = type === 'message' ? { content: [] } : { summary: [] };
          return voidItem(item, type === 'mcp_call' ? {} : emptied);
        }),
    shown: () => items.filter(({ isVoid }) => !isVoid).map(({ fields }) => fields),
  };
};

export const placeOfItem = ({ id, index }: OutputItem) => ({ item_id: id, output_index: index });

/** Completes an item with its last fields. */
export const endItem = (item: OutputItem, last: object): Unnumbered => {
  item.fields = { ...item.fields, ...last };
  return { type: 'response.output_item.done', output_index: item.index, item: item.fields };
};

/** Takes an item out of the output of the response. */
export const voidItem = (item: OutputItem, emptied: object = {}): Unnumbered => {
  item.isVoid = true;
  return endItem(item, { status: 'incomplete', ...emptied });
};
