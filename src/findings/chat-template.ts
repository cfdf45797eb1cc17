/** What a chat with a base model is. */
export const noTemplateSentence =
  "This model has no chat template: it continues the raw text of the messages.";
