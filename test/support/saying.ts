/** For `assert.throws`, which takes a text as its own message and looks at nothing: whether an error says the text. */
export const saying = (text: string) => (error: Error) => error.message.includes(text);
