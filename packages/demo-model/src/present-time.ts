import type { ToolReading } from './read-tools.js';
import { senseOf, stemOf } from './words.js';

/** Tells whether a tool only tells the present time: it takes at most a place. */
export const isClock = ({ name, description, slots, ...tool }: ToolReading): boolean =>
  !tool.isRetrieval &&
  tool.vocabulary.has(time) &&
  (tool.ownStems.has(time) || present.test(`${name} ${description}`)) &&
  slots.every(({ kind }) => kind === 'place');

const present = /\b(?:current|local|now|what time)\b/iu;

const time = senseOf(stemOf('time'));

/** Tells whether a text asks what time or day it is, rather than for a duration or when something happens. */
export const asksForNow = (text: string): boolean => askedFor.test(text) && !asksForSpan(text);

/** Tells whether a text asks for a duration, or when something happens. */
export const asksForSpan = (text: string): boolean => countsOrSchedules.test(text);

const askedFor =
  /(?:\b|o')(?:times?|timezones?|dates?|clocks?|clock|weekday|hours?|late|today|now|days?|tomorrow|yesterday|month|year|week|utc|gmt)\b/iu;

const countsOrSchedules =
  /\bhow (?:many|much|long|often)\b|\b(?:what|which) (?:time|day|date) (?:do|does|did|can|could|should|must|shall|are|is (?!it\b|the time|the date|today|now|in\b|at\b))|\buntil\b|\bwhen (?:is|was|does|do|did|will)\b/iu;

/** Tells whether a text gives a time, or a distance from now, that the time asked for depends on. */
export const givesTime = (text: string): boolean => given.test(text);

const given =
  /\b\d{1,2}(?::\d\d)? ?(?:a\.?m|p\.?m)\b|\b\d{1,2}:\d\d\b|\b\d{1,2} o'?clock\b|\b(?:will|would) it be\b|\bwas it\b|\b(?:\d+|an?|two|three|four|five|six|ten|twelve) (?:minutes?|hours?|days?|weeks?|months?|years?) (?:ago|from now|later|earlier)\b|\bin (?:\d+|an?|half an|two|three|four|five|six|ten|twelve) (?:minutes?|hours?|days?|weeks?|months?|years?)\b/iu;
