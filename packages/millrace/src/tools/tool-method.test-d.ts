import { z } from 'zod';
import { toolMethod } from './tool-method.js';

class Typed {
  @toolMethod({ description: 'Takes what the schema gives.', input: z.object({ day: z.number() }) })
  right(input: { day: number }): number {
    return input.day;
  }

  // @ts-expect-error the schema has no month
  @toolMethod({ description: 'Takes something else.', input: z.object({ day: z.number() }) })
  wrong(input: { month: string }): string {
    return input.month;
  }
}

new Typed();
