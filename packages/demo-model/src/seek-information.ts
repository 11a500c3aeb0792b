import { withoutPoliteness } from './without-politeness.js';
import { contentTokens } from './words.js';

/**
 * Tells whether a text wants to be told something that may be written somewhere, rather than to have something
 * done or made: `how do interrupts work?` and `interrupts` do, `write a poem` and `I am tired` do not.
 */
export const seeksInformation = (text: string): boolean => {
  const request = withoutPoliteness(text);
  const words = contentTokens(request);
  const hasSubject = words.some(({ text: word }) => /\p{L}/u.test(word));
  if (!hasSubject || making.test(request)) return false;
  if (asking.test(request) || /\?\s*$/u.test(text)) return true;
  return (
    words.length <= longestTopic && !/\b(?:i|i'm|we|you|my|am|is|are|was|were)\b/iu.test(request)
  );
};

/** A topic is named in so many words. */
const longestTopic = 4;

const asking =
  /^(?:what|what's|which|who|who's|whose|when|where|why|how|is|are|does|do|did|can|could|should|will|has|have|tell|explain|describe|find|search|look up|look for|list|define|compare|summari[sz]e|show|give)\b/iu;

const making =
  /^(?:write|compose|draw|paint|sing|play|imagine|invent|create|generate|make|build|design|book|buy|order|send|delete|remove|call|remind|schedule|translate|rewrite|roleplay|pretend|tell me a (?:joke|story)|open|run|execute)\b/iu;
