/** A multiple-choice question: the first choice is right. */
export interface ChoiceQuestion {
  question: string;
  choices: readonly [string, string, string, string];
}

/** General knowledge at school level. Written for tapline; MIT. */
export const choiceQuestions: readonly ChoiceQuestion[] = [
  { question: "What is the capital of France?", choices: ["Paris", "Rome", "Madrid", "Berlin"] },
  { question: "What is the capital of Japan?", choices: ["Tokyo", "Beijing", "Seoul", "Bangkok"] },
  { question: "How many days are in a week?", choices: ["Seven", "Five", "Nine", "Twelve"] },
  { question: "What color is the sky on a clear day?", choices: ["Blue", "Green", "Red", "Brown"] },
  { question: "Which animal barks?", choices: ["A dog", "A cat", "A cow", "A fish"] },
  { question: "What do bees make?", choices: ["Honey", "Milk", "Wool", "Cheese"] },
  { question: "What is frozen water called?", choices: ["Ice", "Steam", "Sand", "Smoke"] },
  { question: "Which planet do we live on?", choices: ["Earth", "Mars", "Venus", "Jupiter"] },
  { question: "What is two plus two?", choices: ["Four", "Three", "Five", "Seven"] },
  { question: "Which of these is a fruit?", choices: ["Apple", "Hammer", "Chair", "River"] },
  { question: "What do you use to cut paper?", choices: ["Scissors", "A spoon", "A pillow", "A candle"] },
  { question: "Which season comes after winter?", choices: ["Spring", "Autumn", "Summer", "Harvest"] },
  { question: "What is the opposite of hot?", choices: ["Cold", "Wet", "Tall", "Loud"] },
  { question: "Who wrote Romeo and Juliet?", choices: ["William Shakespeare", "Isaac Newton", "Napoleon", "Mozart"] },
  { question: "Which metal is attracted by a magnet?", choices: ["Iron", "Gold", "Silver", "Copper"] },
  { question: "How many legs does a spider have?", choices: ["Eight", "Four", "Ten", "Two"] },
  { question: "What do plants need to grow?", choices: ["Light and water", "Paper and glue", "Salt and oil", "Wood and nails"] },
  { question: "Which language is spoken in Brazil?", choices: ["Portuguese", "Swedish", "Arabic", "Korean"] },
  { question: "Where do fish live?", choices: ["In water", "In trees", "In the sky", "In sand"] },
  { question: "What is the largest ocean?", choices: ["The Pacific", "The Baltic", "The Red Sea", "The Adriatic"] },
  { question: "Which instrument has black and white keys?", choices: ["A piano", "A drum", "A violin", "A flute"] },
  { question: "What do we call a baby cat?", choices: ["A kitten", "A puppy", "A calf", "A lamb"] },
  { question: "Which gas do people breathe in to live?", choices: ["Oxygen", "Helium", "Neon", "Methane"] },
  { question: "What is the capital of Italy?", choices: ["Rome", "Oslo", "Lisbon", "Vienna"] },
];
