import { fnv1a } from 'millrace/values';
import { toWireId } from '@millrace/wire';

/**
 * Maps ids of tool calls to those that a vendor accepts. Packages send ids as they are, and a conversation may have those of another
 * vendor: Mistral accepts nine letters and digits, and OpenAI up to 64 characters, in chat completions up to 40. Acceptable ids stay
 * the same; each other one has the same replacement in every request.
 */
export const toolIdsOf = (provider: string): ((id: string) => string) => {
  if (provider.startsWith('mistral.')) return (id) => (nine.test(id) ? id : hashOf(id));
  const maxLength = provider.endsWith('.chat') ? 40 : 64;
  return (id) => {
    const wire = toWireId(id);
    return wire.length > maxLength ? `call_${hashOf(id)}` : wire;
  };
};

const nine = /^[a-zA-Z0-9]{9}$/u;

/** Nine letters and digits of two hashes: one alone has only 32 bits. */
const hashOf = (id: string): string => {
  const digitsOf = (text: string): string => fnv1a(text).toString(36).padStart(7, '0');
  return `${digitsOf(id)}${digitsOf(`id ${id}`).slice(-2)}`;
};
