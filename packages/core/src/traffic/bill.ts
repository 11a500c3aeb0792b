import type { ModelChunk } from '../model.js';
import { updatedUsage } from '../updated-usage.js';
import { addUsage, noUsage, type Usage } from '../usage.js';

/** What an answer turns out to cost. */
export interface Bill {
  /** Reads what a chunk says of it. */
  read(chunk: ModelChunk): void;
  /**
   * What it has cost: as reported once the answer is whole, and else at least what was reserved.
   */
  readonly tokens: number;
}

/** Opens the bill of one answer. Attempts that were void have cost what they said. */
export const openBill = (reserved: number, countUsage: (usage: Usage) => number): Bill => {
  let before = noUsage;
  let usage: Usage | undefined;
  let reported = 0;
  let isWhole = false;
  return {
    read: (chunk) => {
      switch (chunk.type) {
        case 'usage':
          usage = updatedUsage(usage ?? noUsage, chunk.usage);
          reported = countUsage(addUsage(before, usage));
          break;
        case 'restart':
          before = addUsage(before, usage ?? noUsage);
          usage = undefined;
          isWhole = false;
          break;
        case 'finish':
          isWhole = true;
          break;
        default:
      }
    },
    get tokens() {
      if (!Number.isFinite(reported) || reported < 0) return reserved;
      return isWhole && usage !== undefined ? reported : Math.max(reserved, reported);
    },
  };
};
