//! The grammars that hold a model: Lark in llguidance and Python, GBNF in llama.cpp and llguidance.
