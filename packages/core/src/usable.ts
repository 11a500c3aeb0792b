import { type ModifiableEvent, type ModifiableType, modifiableTypes } from './events.js';
import { isRecord } from './json.js';
import { areBlocks, areContentBlocks } from './message.js';

/** Tells whether what an interceptor handed back is an event of this type that the loop can go on with. */
export const isUsable = (type: ModifiableType, value: unknown): value is ModifiableEvent =>
  isModifiable(value) && value.type === type && isWhole(value);

const isModifiable = (value: unknown): value is ModifiableEvent =>
  isRecord(value) && modifiableTypes.some((type) => type === value['type']);

const isWhole = (event: ModifiableEvent): boolean => {
  switch (event.type) {
    case 'preReasoning':
    case 'preSummary':
    case 'prePlanning':
      return Array.isArray(event.messages) && isRecord(event.options);
    case 'postReasoning':
    case 'postSummary':
    case 'postPlanning':
      return areBlocks(event.message.content);
    case 'preActing':
      return typeof event.toolUse.name === 'string' && isRecord(event.toolUse.input);
    case 'postActing':
      return areContentBlocks(event.result.content);
    case 'postCall':
      return areBlocks(event.reply.content);
  }
};
