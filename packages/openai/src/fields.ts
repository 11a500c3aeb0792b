import { isRecord } from '@millrace/core/adapter';
import type { JsonRecord } from '@millrace/wire';

/**
 * Gives the fields of an object of a vendor's JSON, and none of anything else: to take many of them out of each event,
 * where nearly all are missing.
 */
export const fieldsOf = (value: unknown): JsonRecord => (isRecord(value) ? value : none);

const none: JsonRecord = {};

/** The text that a field holds; an empty one where it holds anything else. */
export const textIn = (field: unknown): string => (typeof field === 'string' ? field : '');

/** The list that a field holds; an empty one where it holds anything else. */
export const listIn = (field: unknown): readonly unknown[] => (Array.isArray(field) ? field : []);
